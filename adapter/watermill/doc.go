// Package watermill connects Postrider and Watermill, in both directions.
//
// A [Destination] is a destination of a relay that sends through any Watermill publisher:
//
//	destination, err := watermill.NewDestination(publisher, watermill.Config{})
//	r, err := relay.New(store, destination, relay.Config{})
//
// A [Publisher] is a Watermill publisher that writes to an outbox in the caller's transaction. It
// replaces Watermill's SQL publisher and Forwarder.
//
// Use it in programs that embed a relay. The command postrider does not support it, because a
// Watermill publisher is created by code, not from a URL.
package watermill

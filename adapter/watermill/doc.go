// Package watermill joins Postrider and Watermill, in both directions.
//
// A [Destination] is a destination of a relay that sends through any Watermill publisher, so that whatever Watermill can
// send to, a relay can:
//
//	destination, err := watermill.NewDestination(publisher, watermill.Config{})
//	r, err := relay.New(store, destination, relay.Config{})
//
// A [Publisher] is a Watermill publisher that writes to an outbox in the caller's transaction, in the place of Watermill's
// SQL publisher and its Forwarder.
//
// The bridge is for programs that embed a relay. The command postrider does not know it: a Watermill publisher is made by
// code, not by a URL.
package watermill

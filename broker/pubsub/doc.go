// Package pubsub publishes messages to Google Cloud Pub/Sub and consumes them.
//
//	pub, err := pubsub.NewPublisher(pubsub.Config{URL: "pubsub://my-project"})
//
// A message is confirmed when the service has answered its request: the message is then stored in
// more than one zone. The service keeps it only for the subscriptions that the topic has at that
// moment.
//
// The ordering key is the message's order key. The service requires a single key per request, so
// that each key has one request in flight at a time; nothing behind a failed request is sent. A
// subscription delivers in order if it was created with message ordering.
//
// Attributes follow the CloudEvents binding: the prefix "ce-", and the content type in
// "content-type". Formats without an ID of their own carry it in "message-id".
package pubsub

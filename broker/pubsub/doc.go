// Package pubsub carries messages to and from Google Cloud Pub/Sub.
//
//	pub, err := pubsub.NewPublisher(pubsub.Config{URL: "pubsub://my-project"})
//
// A message is confirmed when the service has answered the request that carried it: it has stored the message then, in
// more than one zone. It keeps the message only for the subscriptions that the topic has at that moment.
//
// The ordering key is the message's order key. The service wants one key in a request, so that each key has one request
// under way at a time; nothing behind a failed request is sent. A subscription gives the order back if it was created with
// message ordering.
//
// Attributes are those of the CloudEvents binding: the prefix "ce-", and the content type in "content-type". Formats without
// an ID of their own carry it in "message-id".
package pubsub

// Package pulsar publishes messages to Apache Pulsar and consumes them.
//
//	pub, err := pulsar.NewPublisher(pulsar.Config{URL: "pulsar://localhost:6650"})
//
// A message is confirmed when as many bookies as the namespace's ack quorum requires have it in
// their journals. Pulsar keeps it only while a subscription or a retention policy needs it:
// subscribe before you publish.
//
// Messages of one key go to one partition, in order. When a connection breaks, the outcome of
// messages in flight is reported as unknown. The client's own resending is disabled, so that
// nothing is sent without the caller's knowledge.
//
// There is no official CloudEvents binding for Pulsar. Attributes are properties with the prefix
// "ce-", the content type is the property "content-type", and formats without an ID of their own
// carry it in the property "message-id".
package pulsar

// Package pulsar carries messages to and from Apache Pulsar.
//
//	pub, err := pulsar.NewPublisher(pulsar.Config{URL: "pulsar://localhost:6650"})
//
// A message is confirmed when as many bookies as the namespace's ack quorum says have it in their journals. Pulsar keeps
// it only as long as a subscription, or a retention policy, needs it: subscribe before you publish.
//
// Messages of one key go to one partition, in order. When a connection breaks, what was in flight on it is reported as
// unknown; the client's own resending is switched off, so that nothing is sent behind the caller's back.
//
// There is no official binding of CloudEvents to Pulsar. Attributes are properties with the prefix "ce-", the content
// type is the property "content-type", and formats without an ID of their own carry it in the property "message-id".
package pulsar

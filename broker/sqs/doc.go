// Package sqs publishes messages to Amazon SQS queues and Amazon SNS topics, and consumes them from
// SQS queues.
//
//	pub, err := sqs.NewPublisher(sqs.Config{URL: "sqs://eu-central-1"})
//
// A message goes to the queue, or with sns:// to the topic, that has its name. Names that end in
// ".fifo" denote FIFO queues and topics, which keep the order of each key and drop duplicates for
// five minutes. Standard ones do neither.
//
// A message is confirmed when Amazon has answered, which means that several of its servers have the
// message. The client's own retries are disabled, so that nothing is sent without the caller's
// knowledge.
//
// There is no official CloudEvents binding for SQS. Headers are message attributes, CloudEvents
// attributes have the prefix "ce-", and the content type is the attribute "content-type". A message
// can have ten attributes; headers that do not fit are stored as JSON in one of them,
// "postrider-headers". A payload that is not text that SQS accepts is sent in base64, as
// "postrider-body" then states.
package sqs

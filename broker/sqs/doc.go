// Package sqs carries messages to Amazon SQS queues and Amazon SNS topics, and from SQS queues.
//
//	pub, err := sqs.NewPublisher(sqs.Config{URL: "sqs://eu-central-1"})
//
// A message goes to the queue, or with sns:// to the topic, that has its name. Names that end in ".fifo" are those of FIFO queues
// and topics, which keep the order of each key and drop repetitions for five minutes. Standard ones do neither.
//
// A message is confirmed when Amazon has answered, which it does when several of its servers have the message. The client's own
// retries are switched off, so that nothing is sent behind the caller's back.
//
// There is no official binding of CloudEvents to SQS. Headers are message attributes, those of CloudEvents with the prefix "ce-", and the
// content type is the attribute "content-type". A message has ten attributes at most; what does not fit stands as JSON in one of
// them, "postrider-headers". A payload that is no text that SQS accepts is sent in base64, and "postrider-body" says so.
package sqs

// Package asynq publishes messages to queues of asynq, the task queue on Redis, and consumes them.
//
//	pub, err := asynq.NewPublisher(asynq.Config{URL: "redis://localhost:6379/0", Queue: "critical"})
//
// Each message becomes a task: its name is the task's type, its body the payload, its headers the
// task's headers, plus "key" and "content-type". A message's own header with one of these names, or
// with the prefix "h:", gets the prefix "h:".
//
// The message's ID is the task's ID. While asynq knows a task with the same ID, it drops
// duplicates. A message is confirmed when Redis has the task, or had it before. Whether it survives
// a crash of the machine depends on the configuration of Redis; see [Publisher.Inspect].
//
// Messages of one key are enqueued in order. Workers of asynq process several tasks at a time, in
// no order.
package asynq

// Package asynq carries messages to queues of asynq, the task queue on Redis, and back.
//
//	pub, err := asynq.NewPublisher(asynq.Config{URL: "redis://localhost:6379/0", Queue: "critical"})
//
// Each message becomes a task: its name is the task's type, its body the task's payload, its headers the task's. Beside
// them stand the headers "key" and "content-type"; a header of the message's own that has one of these names, or begins
// with "h:", has "h:" put before it.
//
// The message's ID is the task's. As long as asynq knows a task with the same ID, it drops the repetition. A message is
// confirmed when Redis has the task, or had it before. What that is worth when the machine crashes depends on how Redis
// is set up; see [Publisher.Inspect].
//
// Messages of one key are put into the queue in their order. Workers of asynq take several at a time, and in no order.
package asynq

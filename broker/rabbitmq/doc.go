// Package rabbitmq publishes messages to RabbitMQ and consumes them.
//
//	pub, err := rabbitmq.NewPublisher(rabbitmq.Config{URL: "amqp://user:password@localhost:5672/"})
//	if err != nil {
//		return err
//	}
//	defer pub.Close()
//
// A message's name is that of a queue or, with [Config.Exchange], a routing key. Messages are
// persistent and mandatory. A message is confirmed when every queue that it was routed to has it: a
// classic queue on its node's disk, a quorum queue on the disks of most of its nodes. A message
// that no queue takes is reported as failed, although RabbitMQ confirms it too. Publishing does not
// declare queues.
package rabbitmq

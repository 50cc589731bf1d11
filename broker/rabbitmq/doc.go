// Package rabbitmq carries messages to RabbitMQ, and receives them from there.
//
//	pub, err := rabbitmq.NewPublisher(rabbitmq.Config{URL: "amqp://user:password@localhost:5672/"})
//	if err != nil {
//		return err
//	}
//	defer pub.Close()
//
// A message's name is that of a queue or, with [Config.Exchange], a routing key. Messages are persistent and mandatory.
// Confirmed means that every queue that the message was routed to has it: a classic queue on the disk of its node, a
// quorum queue on the disks of most of its nodes. A message that no queue takes counts as not accepted, although RabbitMQ
// confirms it too. Queues are not declared by publishing.
package rabbitmq

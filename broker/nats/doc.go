// Package nats carries messages to NATS JetStream and receives them from there.
//
//	pub, err := nats.NewPublisher(nats.Config{URL: "nats://localhost:4222"})
//	if err != nil {
//		return err
//	}
//	defer pub.Close()
//	errs := pub.Publish(ctx, []postrider.Message{m})
//
// The topic of a message is its subject, its ID the header Nats-Msg-Id, by which the stream drops repetitions within its
// duplicate window.
//
// Confirmed means that the stream has acknowledged the message: a majority of its replicas has written it to the
// operating system. When that reaches the disk is up to the server's sync_interval, 2 minutes unless it says otherwise;
// [Publisher.Inspect] warns where one power failure would be enough to lose messages.
//
// A message that claims to be a CloudEvent and is none is handed to the handler as it is, with its subject as the type;
// nothing vanishes.
package nats

// Package nats publishes messages to NATS JetStream and consumes them.
//
//	pub, err := nats.NewPublisher(nats.Config{URL: "nats://localhost:4222"})
//	if err != nil {
//		return err
//	}
//	defer pub.Close()
//	errs := pub.Publish(ctx, []postrider.Message{m})
//
// The topic of a message is its subject. Its ID is sent as the header Nats-Msg-Id, by which the
// stream drops duplicates within its duplicate window.
//
// A message is confirmed when the stream has acknowledged it: a majority of its replicas has
// written it to the operating system. The server's sync_interval, 2 minutes by default, determines
// when it reaches the disk; [Publisher.Inspect] warns if a single power failure could lose
// messages.
//
// A message that claims to be a CloudEvent but is invalid is not dropped: the handler receives it
// undecoded, with its subject as the type.
package nats

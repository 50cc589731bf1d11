// Package kafka publishes messages to Apache Kafka and compatible brokers, and consumes them.
//
//	pub, err := kafka.NewPublisher(kafka.Config{URL: "kafka://localhost:9092"})
//	if err != nil {
//		return err // a mistake in the configuration; a cluster that is down is found out by Publish
//	}
//	defer pub.Close()
//	errs := pub.Publish(ctx, msgs)
//
// A message is confirmed when all in-sync replicas of its partition have it (acks=all, idempotent
// producer). The topic's min.insync.replicas, which [Publisher.Inspect] shows, sets their minimum
// number.
//
// [Publisher] keeps order. Each Publish owns a producer while it runs, nothing is sent before all
// records are assigned to a partition, and the broker refuses a batch whose predecessor is missing.
// After any failure, the producer and its connections are closed before Publish returns, so that
// nothing can arrive late.
//
// [Consumer] is a member of a consumer group. Kafka stores one offset per partition, so a message
// is committed only when it and all before it in its partition are done: after a restart, messages
// behind an unfinished one are redelivered. A record that claims to be a CloudEvent but is invalid
// is handed over undecoded and logged.
package kafka

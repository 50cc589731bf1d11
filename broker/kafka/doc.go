// Package kafka carries messages to Apache Kafka and to what speaks its protocol, and receives them from there.
//
//	pub, err := kafka.NewPublisher(kafka.Config{URL: "kafka://localhost:9092"})
//	if err != nil {
//		return err // a mistake in the configuration; a cluster that is down is found out by Publish
//	}
//	defer pub.Close()
//	errs := pub.Publish(ctx, msgs)
//
// A message is confirmed when all in-sync replicas of its partition have it (acks=all, idempotent producer): how many
// these are at least is the topic's min.insync.replicas, which [Publisher.Inspect] shows.
//
// [Publisher] keeps order: each Publish has a producer of its own while it lasts, nothing is sent before all records
// have their place in a partition, and the broker refuses a batch whose predecessor it does not have. A producer that
// has failed in any way is closed, with its connections, before Publish returns, so that nothing can follow late.
//
// [Consumer] is a member of a consumer group. Kafka remembers one offset for each partition, so a message counts as
// acknowledged when it and all before it in its partition are done: after a restart those behind an unfinished one come
// again. A record that claims to be a CloudEvent and is none is handed over as it is, body and headers, and logged.
package kafka

// Package redis publishes messages to Redis Streams and consumes them.
//
//	pub, err := redis.NewPublisher(redis.Config{URL: "redis://localhost:6379/0"})
//
// Each name is a stream, each message an entry. Headers are fields under their own names, such as
// "ce-id", "ce-type" and "traceparent", next to the fields "key", "content-type" and "data", the
// body. A header with one of these three names, or with the prefix "h:", gets the prefix "h:".
//
// A message is confirmed when Redis has answered that the entry exists. Whether it survives a crash
// of the machine depends on the configuration of Redis; see [Publisher.Inspect]. Streams are not
// trimmed unless [Config.Trim] is set.
//
// Messages of a call that must stay in order are sent in transactions (MULTI and EXEC), so that a
// refused message stops those behind it.
package redis

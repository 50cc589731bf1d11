// Package redis carries messages to Redis Streams, and back.
//
//	pub, err := redis.NewPublisher(redis.Config{URL: "redis://localhost:6379/0"})
//
// Each name is a stream, each message an entry. Its headers are fields under their own names, such as "ce-id",
// "ce-type" and "traceparent"; beside them stand "key", "content-type" and "data", the body. A header that has one of
// those three names, or begins with "h:", is a field with "h:" before it.
//
// A message is confirmed when Redis has answered that the entry is there. What that is worth when the machine crashes
// depends on how Redis is set up; see [Publisher.Inspect]. Streams are never trimmed.
//
// All messages of a call that may not overtake each other go in transactions (MULTI and EXEC), so that a refused one
// stops those behind it. Redis Cluster is not supported.
package redis

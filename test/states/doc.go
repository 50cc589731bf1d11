// Package states tests the state transitions of messages, on every store alike. The scripts in
// testdata each run with real relays on a fresh log of one shard. A script has one command per line;
// "#" begins a comment.
//
// The name of a message is its key, one letter, and a number, such as a1; "a1..a5" are five of them.
// In enqueue a name may be followed by "@300ms" (deliver after), "!5" (priority) or "=k" (dedup key).
//
//	relay [order=strict] [attempts=5] [backoff=1m] [batch=500] [feed=default]
//	                       starts a relay; backoff may be a series: 10ms,20ms
//	stop | restart         all relays, cleanly
//	refuse|fail|accept a1  the destination rejects it, fails it with a plain error, or accepts it
//	down | up              the destination is unavailable, or available
//	enqueue a1 a2          in one transaction
//	repeat a1=k            enqueues a message that is dropped because its dedup key was seen before
//	retry|skip|park|discard a1
//	edit a1 a1x            replaces its payload, so that it arrives as a1x
//	feed add NAME now|oldest, feed rm NAME, feed pause NAME, feed resume NAME, feed rewind NAME a1
//	refused COMMAND        the admin API rejects the command
//
// The other commands state a condition and wait until it holds:
//
//	delivered [feed=NAME] b1 a1 a2   all delivered messages; order matters within a key
//	arrived [feed=NAME] b1 a1 a2     the same; order matters
//	status a1 retry attempts=1       its deferral, or "none"; also error=word
//	blocked a1+2 b1+0                the blocked keys: the blocking message, and how many messages wait behind it
//	shards 0                         the number of shards that are served
//	pending 0                        the number of messages that are not settled, in all feeds
//	tries a1 3                       it was sent at least 3 times
//	pauses a1 10ms 20ms              the minimum delays between its first attempts
//	audit retry, feed pause          the audit log, oldest entry first
//	busy STATEMENT                   STATEMENT, while messages of another key arrive, which are not listed
package states

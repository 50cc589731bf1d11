// Package states tests the ways of a message through its states, on every store alike. The ways are the scripts of testdata;
// each runs with real relays on a fresh log of one shard. A script has one command a line, and "#" begins a comment.
//
// A message is named by the letter of its key and a number, such as a1, and "a1..a5" are five of them. In enqueue a name may
// be followed by "@300ms" (deliver after), "!5" (priority) or "=k" (dedup key).
//
//	relay [order=strict] [attempts=5] [backoff=1m] [batch=500] [feed=default]
//	                       starts a relay; backoff may be a series: 10ms,20ms
//	stop | restart         all relays, cleanly
//	refuse|fail|accept a1  the destination refuses it, fails for it with a plain error, or takes it
//	down | up              the destination is unavailable, or there
//	enqueue a1 a2          in one transaction
//	repeat a1=k            enqueue of what is left out, as the dedup key was seen before
//	retry|skip|park|discard a1
//	edit a1 a1x            replaces its payload: it arrives as a1x
//	feed add NAME now|oldest, feed rm NAME, feed pause NAME, feed resume NAME, feed rewind NAME a1
//	refused COMMAND        the admin API refuses it
//
// The others state something, and wait until it holds:
//
//	delivered [feed=NAME] b1 a1 a2   all that has arrived; the order counts within a key
//	arrived [feed=NAME] b1 a1 a2     the same; the order counts
//	status a1 retry attempts=1       how it is deferred, or "none"; also error=word
//	blocked a1+2 b1+0                the blocked keys: what holds them up, and how many wait behind it
//	lanes 0                          so many shards are served
//	pending 0                        so many messages are not settled, of all feeds
//	tries a1 3                       it was sent at least 3 times
//	pauses a1 10ms 20ms              so much time or more was between its first attempts
//	audit retry, feed pause          what operators did, oldest first
//	busy STATEMENT                   the same while messages of another key arrive, which are not listed
package states

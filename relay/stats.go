package relay

import (
	"sync/atomic"

	"github.com/postrider/postrider/relay/internal/shard"
)

// Stats is a snapshot of what a relay has done since it started and of what it is doing. Counters count this relay
// alone.
type Stats struct {
	Published int64 // messages that the destination has confirmed
	Failed    int64 // messages that came back from a Publish without confirmation, each time counted
	Refused   int64 // of Failed, those that the destination called permanent
	Retried   int64 // messages sent again after a failure
	Deferred  int64 // messages deferred
	Dead      int64 // messages that became dead letters

	Reads    int64 // calls of Feed.Read
	Settles  int64 // calls of Feed.Settle
	Balances int64 // calls of Feed.Balance
	Fenced   int64 // shards lost to another relay, or to a lease that ran out
	Resets   int64 // how often the store has taken back what it had handed out

	Blocked  int // keys whose messages wait behind one that has failed, in the shards held
	Lanes    int // shards held
	Quota    int // shards that would be this relay's fair share
	Members  int // relays that serve the feed
	Failing  int // of Lanes, those whose last call of the destination confirmed nothing
	Buffered int // messages read and not yet confirmed, or confirmed behind one that is not, in all lanes
	Bytes    int // what they take in memory, about
	Held     int // names that accept nothing at the moment, in all lanes

	// Paused says why an operator must act before the relay can work, such as the text of [feeds.ErrForeign].
	// It is empty otherwise.
	Paused string
}

type counters struct {
	published, failed, refused, retried atomic.Int64
	deferred, dead                      atomic.Int64
	reads, settles, balances            atomic.Int64
	fenced, resets                      atomic.Int64
	quota, members                      atomic.Int64
	paused                              atomic.Pointer[string]
}

func (c *counters) add(n shard.Counts) {
	if n == (shard.Counts{}) {
		return
	}
	c.published.Add(n.Published)
	c.failed.Add(n.Failed)
	c.refused.Add(n.Refused)
	c.retried.Add(n.Retried)
	c.deferred.Add(n.Deferred)
	c.dead.Add(n.Dead)
}

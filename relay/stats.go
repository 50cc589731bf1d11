package relay

import (
	"sync/atomic"

	"github.com/postrider/postrider/relay/internal/shard"
)

// Stats is a snapshot of the counters and gauges of one relay. Counters start at zero with the
// relay.
type Stats struct {
	Published int64 // messages that the destination has confirmed
	Failed    int64 // messages that a Publish did not confirm, counted each time
	Refused   int64 // of Failed, those that the destination rejected permanently
	Retried   int64 // messages sent again after a failure
	Deferred  int64 // messages deferred
	Dead      int64 // messages that became dead letters

	Reads    int64 // calls of Feed.Read
	Settles  int64 // calls of Feed.Settle
	Balances int64 // calls of Feed.Balance
	Fenced   int64 // shards lost to another relay, or because the lease expired
	Resets   int64 // resets of the store, which made everything void that was not settled

	Blocked  int // keys with deferred messages, in the owned shards
	Shards   int // shards owned
	Quota    int // the relay's fair share of shards
	Members  int // relays that serve the feed
	Failing  int // of Shards, those whose last call confirmed nothing
	Buffered int // messages read that are not in the confirmed prefix, in all shards
	Bytes    int // their approximate size in memory
	Held     int // names held because they accept nothing, in all shards

	// Paused is the reason that the relay needs an operator before it can work, such as the text of
	// [feeds.ErrForeign]. It is empty otherwise.
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

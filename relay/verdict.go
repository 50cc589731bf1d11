package relay

import (
	"time"

	"github.com/postrider/postrider"
)

// The order policies of a feed.
const (
	// Strict holds back the later messages of a key while one of them fails, until an operator decides if need be.
	Strict = "strict"
	// Skip lets the later messages of a key overtake one that fails.
	Skip = "skip"
)

// verdict decides what becomes of a message after a number of failed attempts.
func (c *Config) verdict(attempts int, err error) (postrider.Status, time.Duration) {
	if attempts >= c.MaxAttempts {
		return postrider.StatusDead, 0
	}
	return postrider.StatusRetry, max(c.delay(attempts), wish(err))
}

// delay is the pause after a number of failed attempts.
func (c *Config) delay(attempts int) time.Duration {
	if n := len(c.BackoffSeries); n > 0 {
		return jitter(c.BackoffSeries[min(max(attempts, 1), n)-1])
	}
	b := backoff{min: c.BackoffBase, max: c.BackoffMax}
	return b.after(max(attempts, 1))
}

// died tells the log of a message that has become a dead letter. A flood of them is told once a second.
func (r *Relay) died(shard int, m *postrider.Message, attempts int, err error) {
	r.count.dead.Add(1)
	now := time.Now().UnixNano()
	last := r.mourned.Load()
	if now-last < int64(time.Second) || !r.mourned.CompareAndSwap(last, now) {
		return
	}
	r.log.Error("relay: message is dead, an operator decides: postrider dead show "+m.ID.String(),
		"shard", shard, "id", m.ID, "type", m.Type, "key", m.OrderKey(), "dedup_key", m.DedupKey,
		"aggregate_type", m.AggregateType, "aggregate_id", m.AggregateID, "correlation_id", m.CorrelationID,
		"attempt", attempts, "latency", time.Since(m.OccurredAt).Round(time.Millisecond), "err", err)
}

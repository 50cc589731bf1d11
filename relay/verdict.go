package relay

import (
	"context"
	"log/slog"
	"sync/atomic"
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

// died tells the log of a message that has become a dead letter.
func (r *Relay) died(shard int, m *postrider.Message, attempts int, err error) {
	r.count.dead.Add(1)
	r.tell(&r.mourned, slog.LevelError, "relay: message is dead, an operator decides: postrider dead show "+m.ID.String(), shard, m, attempts, err)
}

// refused tells the log of a message that was set aside for the first time.
func (r *Relay) refused(shard int, m *postrider.Message, attempts int, err error) {
	r.tell(&r.complained, slog.LevelWarn, "relay: message has failed, is set aside and will be tried again", shard, m, attempts, err)
}

// tell writes a line about a message. Of a flood of them one a second is told.
func (r *Relay) tell(last *atomic.Int64, level slog.Level, text string, shard int, m *postrider.Message, attempts int, err error) {
	now, before := time.Now(), last.Load()
	if now.UnixNano()-before < int64(time.Second) || !last.CompareAndSwap(before, now.UnixNano()) {
		return
	}
	r.log.Log(context.Background(), level, text, //nolint:sloglint // one of few texts
		"shard", shard, "", *m,
		"attempt", attempts, "latency", now.Sub(m.OccurredAt).Round(time.Millisecond), "err", err)
}

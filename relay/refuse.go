package relay

import (
	"time"

	"github.com/postrider/postrider"
)

// refuse decides what becomes of a message that the destination will never accept: for how long the lane holds it, and
// with it the later messages of its key, before it is tried again. Nothing is ever dropped or skipped here: the other
// keys of the shard go on until the read-ahead is full, and then all of it stands until the destination changes its
// mind.
func (l *lane) refuse(m *postrider.Message, err error) time.Duration {
	if now := time.Now(); l.complained.IsZero() || now.Sub(l.complained) >= time.Minute {
		l.complained = now
		l.t.r.log.Error("relay: message was refused, its key waits, and its shard once the read-ahead is full",
			"shard", l.shard, "id", m.ID, "type", m.Type, "key", m.OrderKey(), "err", err)
	}
	return jitter(l.t.r.cfg.RetryMax)
}

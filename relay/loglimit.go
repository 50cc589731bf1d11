package relay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/relay/internal/shard"
)

// logLimit logs at most one line per second.
type logLimit struct{ last atomic.Int64 }

func (s *logLimit) log(log *slog.Logger, level slog.Level, text string, number int, t shard.Told) {
	now, before := time.Now(), s.last.Load()
	if now.UnixNano()-before < int64(time.Second) || !s.last.CompareAndSwap(before, now.UnixNano()) {
		return
	}
	log.Log(context.Background(), level, text, //nolint:sloglint // one of few texts
		"shard", number, "", *t.Message,
		"attempt", t.Attempts, "latency", now.Sub(t.Message.OccurredAt).Round(time.Millisecond), "err", t.Err)
}

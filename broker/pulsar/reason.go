package pulsar

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// reasons is a [slog.Handler] that remembers the client's last warning. If the client cannot
// connect, its error does not give the cause: only its log tells whether it is the token, the
// certificate or the network.
type reasons struct {
	mu   sync.Mutex
	last string
	at   time.Time
}

// Enabled implements [slog.Handler].
func (*reasons) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements [slog.Handler].
func (r *reasons) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			text += ": " + err.Error()
		}
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.at = text, time.Now()
	return nil
}

// WithAttrs implements [slog.Handler].
func (r *reasons) WithAttrs(attrs []slog.Attr) slog.Handler { return &withAttrs{r, attrs} }

// WithGroup implements [slog.Handler].
func (r *reasons) WithGroup(string) slog.Handler { return r }

// withAttrs is a handler that adds attributes to its records.
type withAttrs struct {
	*reasons
	attrs []slog.Attr
}

func (w *withAttrs) Handle(ctx context.Context, record slog.Record) error {
	record.AddAttrs(w.attrs...)
	return w.reasons.Handle(ctx, record)
}

func (w *withAttrs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &withAttrs{w.reasons, append(w.attrs[:len(w.attrs):len(w.attrs)], attrs...)}
}

// explain adds the warning that the client has logged since then.
func (r *reasons) explain(err error, since time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || r.at.Before(since) {
		return err
	}
	return fmt.Errorf("%w (%s)", err, r.last)
}

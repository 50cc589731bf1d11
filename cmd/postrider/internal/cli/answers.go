package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// graceAfterAnswer is how long failures are tolerated after the last successful answer.
const graceAfterAnswer = 10 * time.Second

// answers records whether a peer responds. It is safe for concurrent use.
type answers struct {
	mu         sync.Mutex
	ok, failed time.Time
	err        error // the last failure
}

func (a *answers) note(err error) {
	if errors.Is(err, context.Canceled) {
		return // canceled by this process
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.ok = time.Now()
		return
	}
	a.failed, a.err = time.Now(), err
}

// ever reports whether there was a successful answer at all.
func (a *answers) ever() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.ok.IsZero()
}

// silent reports whether calls have failed since the last answer and that answer is older than
// graceAfterAnswer. If within is not 0, it also reports true when the last answer is older than
// within.
func (a *answers) silent(within time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := time.Since(a.ok)
	return a.failed.After(a.ok) && since > graceAfterAnswer || within > 0 && since > within
}

func (a *answers) last() (time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed, a.err
}

// listened wraps a destination, and records its answers and the broker's names that messages go to.
// It records only the first message's name of each call: every name in use comes first in a call
// sooner or later.
type listened struct{ *openDestination }

func (l listened) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := l.pub.Publish(ctx, msgs)
	l.answers.note(answered(errs))
	if len(msgs) > 0 {
		l.watch.Called(l.NameOf(&msgs[0]), errs)
	}
	return errs
}

// KeepsOrder implements [broker.OrderKeeper].
func (l listened) KeepsOrder() bool {
	keeper, ok := l.pub.(broker.OrderKeeper)
	return ok && keeper.KeepsOrder()
}

// NameOf implements [broker.Namer].
func (l listened) NameOf(m *postrider.Message) string {
	if n, ok := l.pub.(broker.Namer); ok {
		return n.NameOf(m)
	}
	return ""
}

// Recall implements [broker.Recaller].
func (l listened) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	return broker.Recall(ctx, l.pub, names, since, found)
}

// Close implements [postrider.Publisher].
func (l listened) Close() error { return l.pub.Close() }

// answered returns nil if the destination has decided about at least one message. A rejection of a
// message or of a name is an answer too.
func answered(errs []error) error {
	var first error
	for _, err := range errs {
		if err == nil || postrider.ScopeOf(err) == postrider.ScopeMessage || postrider.ScopeOf(err) == postrider.ScopeName {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// listener records the answers of a database.
type listener struct{ *answers }

var (
	_ pgx.QueryTracer   = listener{}
	_ pgx.ConnectTracer = listener{}
)

func (listener) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (l listener) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	l.note(data.Err)
}

func (listener) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return ctx
}

// TraceConnectEnd records failures only. A successful connection proves nothing: a pooler accepts
// connections also when its database is down.
func (l listener) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	if data.Err != nil {
		l.note(data.Err)
	}
}

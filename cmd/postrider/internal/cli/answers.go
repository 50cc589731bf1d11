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

// forgiven is how long after an answer failures are no reason to call somebody silent.
const forgiven = 10 * time.Second

// answers remembers whether somebody answers who is spoken to. It is safe for concurrent use.
type answers struct {
	mu         sync.Mutex
	ok, failed time.Time
	err        error // the last one
}

func (a *answers) note(err error) {
	if errors.Is(err, context.Canceled) {
		return // we have hung up ourselves
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.ok = time.Now()
		return
	}
	a.failed, a.err = time.Now(), err
}

// ever reports whether there was an answer at all.
func (a *answers) ever() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.ok.IsZero()
}

// silent reports whether there are failures and no answers, or no answer for longer than within, if that is not 0.
func (a *answers) silent(within time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since := time.Since(a.ok)
	return a.failed.After(a.ok) && since > forgiven || within > 0 && since > within
}

func (a *answers) last() (time.Time, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed, a.err
}

// listened is a destination whose answers are noted, and the names that messages go to: one of each call, because others begin calls of
// their own sooner or later.
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

// Close implements [postrider.Publisher].
func (l listened) Close() error { return l.pub.Close() }

// answered returns nil if the destination has decided about some message: a refusal is an answer too, of the message or of the
// name that it goes to.
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

// listener notes the answers of a database.
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

// TraceConnectEnd takes no connection for an answer: a pooler accepts them also when its database is down.
func (l listener) TraceConnectEnd(_ context.Context, data pgx.TraceConnectEndData) {
	if data.Err != nil {
		l.note(data.Err)
	}
}

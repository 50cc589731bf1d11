package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

// OnceResult compares a relay that can ask the broker what has arrived with one that cannot.
type OnceResult struct {
	PlainPerSecond float64 `json:"plain_per_second"`
	Ratio          float64 `json:"ratio"`
	Rate           int     `json:"rate"` // messages a second of the latencies
	P99            float64 `json:"p99_ms"`
	PlainP99       float64 `json:"plain_p99_ms"`
}

func (r *OnceResult) table() [][]string {
	return [][]string{
		{"backlog through a relay that cannot ask", whole(r.PlainPerSecond), "messages/s"},
		{"ratio of the relays", fraction(r.Ratio), ""},
		{fmt.Sprintf("commit to confirmed at %d/s, 99 %%", r.Rate), millis(r.P99), "ms"},
		{"the same, by a relay that cannot ask", millis(r.PlainP99), "ms"},
	}
}

// anonymous hides from a publisher who sends: it has nothing to fence, and cannot be asked.
type anonymous struct{ postrider.Publisher }

// Publish implements [postrider.Publisher].
func (a anonymous) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return a.Publisher.Publish(nameless{ctx}, msgs) //nolint:contextcheck // it inherits all but one value
}

// KeepsOrder implements [broker.OrderKeeper].
func (a anonymous) KeepsOrder() bool { return witness{a.Publisher, nil}.KeepsOrder() }

// NameOf implements [broker.Namer].
func (a anonymous) NameOf(m *postrider.Message) string { return witness{a.Publisher, nil}.NameOf(m) }

// nameless is a context without a sender.
type nameless struct{ context.Context }

// Value implements [context.Context].
func (c nameless) Value(key any) any {
	value := c.Context.Value(key)
	if _, ok := value.(broker.Sender); ok {
		return nil
	}
	return value
}

// paced returns the 99th percentile of the time from commit to confirmation, in milliseconds, at a
// steady rate.
func (l *Lab) paced(ctx context.Context, feed string, to postrider.Publisher) (p99 float64, err error) {
	b := newBook()
	p, err := l.hire(ctx, b)
	if err != nil {
		return 0, err
	}
	defer p.dismiss()
	config := relay.Config{Feed: feed, Create: true, From: feeds.Origin{Now: true}, Logger: l.Logger}
	carrier, err := l.carryWith(ctx, config, witness{to, b})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, carrier.halt()) }()
	if err := l.warmUp(ctx, p); err != nil {
		return 0, err
	}
	if err := p.drain(ctx, feed); err != nil {
		return 0, err
	}
	first := b.drawn()
	if err := p.steady(ctx, l.Rate, l.Phase); err != nil {
		return 0, err
	}
	if err := p.drain(ctx, feed); err != nil {
		return 0, err
	}
	return milliseconds(percentile(b.latencies(first, b.drawn()), 0.99)), nil
}

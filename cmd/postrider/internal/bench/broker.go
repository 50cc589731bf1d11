package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
)

// BrokerResult compares the relay with the broker's own client.
type BrokerResult struct {
	Broker         string  `json:"broker"`
	Keys           int     `json:"keys"`
	Messages       int     `json:"messages"`
	BarePerSecond  float64 `json:"bare_per_second"`
	RelayPerSecond float64 `json:"relay_per_second"`
	Ratio          float64 `json:"ratio"`
	Undelivered    int64   `json:"undelivered"`

	Once *OnceResult `json:"once,omitempty"`
}

// Broker measures how fast a backlog reaches a broker through the relay, and the same number of
// messages through the broker's own client, in turn. Rates are medians.
func Broker(ctx context.Context, l *Lab, d broker.Driver, s *broker.Settings) (BrokerResult, error) {
	if d.Bare == nil {
		return BrokerResult{}, fmt.Errorf("bench: %s has no client to compare with", d.Name)
	}
	pub, err := d.Open(s) // checks the settings before the log is filled
	if err != nil {
		return BrokerResult{}, err
	}
	defer pub.Close() //nolint:errcheck // each message was confirmed
	if d.Create != nil {
		if err := d.Create(ctx, s, l.Topic); err != nil {
			return BrokerResult{}, fmt.Errorf("bench: creating %s: %w", l.Topic, err)
		}
	}
	if err := l.fill(ctx, 0, int64(l.Messages)); err != nil {
		return BrokerResult{}, err
	}
	load := broker.Load{Name: l.Topic, Messages: l.Messages, Size: l.Payload, Keys: l.Keys}
	var bare, relayed, plain []float64
	var paced, pacedPlain []float64
	var undelivered int64
	for round := range l.Rounds {
		to, err := renamed(pub, round+1)
		if err != nil {
			return BrokerResult{}, err
		}
		l.progressf("round %d of %d: %s alone", round+1, l.Rounds, d.Name)
		start := time.Now()
		if err := d.Bare(ctx, s, load); err != nil {
			return BrokerResult{}, fmt.Errorf("bench: %s alone: %w", d.Name, err)
		}
		bare = append(bare, perSecond(int64(l.Messages), time.Since(start)))

		rate, missing, err := l.drainTo(ctx, fmt.Sprintf("broker%d", round+1), to)
		if err != nil {
			return BrokerResult{}, err
		}
		relayed = append(relayed, rate)
		undelivered += missing
		if !l.Once {
			continue
		}
		if to, err = renamed(pub, l.Rounds+round+1); err != nil {
			return BrokerResult{}, err
		}
		if rate, missing, err = l.drainTo(ctx, fmt.Sprintf("plain%d", round+1), anonymous{to}); err != nil {
			return BrokerResult{}, err
		}
		plain = append(plain, rate)
		undelivered += missing
		for _, side := range []struct {
			feed string
			to   postrider.Publisher
			into *[]float64
		}{{"paced", to, &paced}, {"pacedplain", anonymous{to}, &pacedPlain}} {
			p99, err := l.paced(ctx, fmt.Sprint(side.feed, round+1), side.to)
			if err != nil {
				return BrokerResult{}, err
			}
			*side.into = append(*side.into, p99)
		}
	}
	result := BrokerResult{
		Broker:         d.Name,
		Keys:           l.Keys,
		Messages:       l.Messages,
		BarePerSecond:  rounded(median(bare), 1),
		RelayPerSecond: rounded(median(relayed), 1),
		Ratio:          rounded(quotient(median(relayed), median(bare)), 4),
		Undelivered:    undelivered,
	}
	if l.Once {
		result.Once = &OnceResult{
			PlainPerSecond: rounded(median(plain), 1),
			Ratio:          rounded(quotient(median(relayed), median(plain)), 4),
			Rate:           l.Rate,
			P99:            rounded(median(paced), 3),
			PlainP99:       rounded(median(pacedPlain), 3),
		}
	}
	return result, nil
}

// renamed gives the messages of each round their own IDs, because brokers drop duplicates.
func renamed(pub postrider.Publisher, round int) (postrider.Publisher, error) {
	table, err := route.NewTable([]route.Rule{{Destination: "broker", ID: fmt.Sprintf("round-%d-{id}", round)}})
	if err != nil {
		return nil, err
	}
	return route.NewRouter(table, map[string]postrider.Publisher{"broker": pub}, route.Config{})
}

// Table implements [Result].
func (r BrokerResult) Table() [][]string {
	rows := [][]string{
		{r.Broker + "'s client alone", whole(r.BarePerSecond), "messages/s"},
		{"backlog through the relay", whole(r.RelayPerSecond), "messages/s"},
		{"ratio", fraction(r.Ratio), ""},
		{"not delivered", count(r.Undelivered), "messages"},
	}
	if r.Once == nil {
		return rows
	}
	return append(rows, r.Once.table()...)
}

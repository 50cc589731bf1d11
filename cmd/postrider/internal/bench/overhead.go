package bench

import (
	"context"
	"fmt"
)

// OverheadResult is the cost of a relay for the producers.
type OverheadResult struct {
	BusinessPerSecond float64 `json:"business_per_second"` // the business row alone
	BarePerSecond     float64 `json:"bare_per_second"`     // with a message
	RelayedPerSecond  float64 `json:"relayed_per_second"`  // with a message and a relay
	Ratio             float64 `json:"ratio"`               // relayed ÷ bare
	BusinessRatio     float64 `json:"business_ratio"`      // relayed ÷ business: the total cost for a user
	Undelivered       int64   `json:"undelivered"`
	P50               float64 `json:"p50_ms"`
	P99               float64 `json:"p99_ms"`
}

// Overhead measures producers at full load, without messages, without a relay and with one, in
// turn. Rates are medians over the rounds. The latencies are those of all messages that were
// written with a relay.
func Overhead(ctx context.Context, l *Lab) (OverheadResult, error) {
	b := newBook()
	p, err := l.hire(ctx, b)
	if err != nil {
		return OverheadResult{}, err
	}
	defer p.dismiss()
	mute := l.producersAt(silent{p.shop.(*logShop)}, newBook()) //nolint:errcheck // the lab's engine has no other
	if err := l.warmUp(ctx, p); err != nil {
		return OverheadResult{}, err
	}

	var business, bare, relayed []float64
	var latencies []int64
	for round := 1; round <= l.Rounds; round++ {
		without, err := l.loadPhase(ctx, mute, fmt.Sprintf("round %d of %d, without messages", round, l.Rounds))
		if err != nil {
			return OverheadResult{}, err
		}
		alone, err := l.loadPhase(ctx, p, fmt.Sprintf("round %d of %d, without a relay", round, l.Rounds))
		if err != nil {
			return OverheadResult{}, err
		}
		beside, err := l.relayedPhase(ctx, p, discarding(b), fmt.Sprintf("round %d of %d, with the relay", round, l.Rounds))
		if err != nil {
			return OverheadResult{}, err
		}
		business = append(business, without.committedPerSecond())
		bare = append(bare, alone.committedPerSecond())
		relayed = append(relayed, beside.committedPerSecond())
		latencies = append(latencies, b.latencies(beside.first, beside.end)...)
	}
	return OverheadResult{
		BusinessPerSecond: rounded(median(business), 1),
		BarePerSecond:     rounded(median(bare), 1),
		RelayedPerSecond:  rounded(median(relayed), 1),
		Ratio:             rounded(quotient(median(relayed), median(bare)), 4),
		BusinessRatio:     rounded(quotient(median(relayed), median(business)), 4),
		Undelivered:       b.undelivered(),
		P50:               milliseconds(percentile(latencies, 0.50)),
		P99:               milliseconds(percentile(latencies, 0.99)),
	}, nil
}

// Table implements [Result].
func (r OverheadResult) Table() [][]string {
	return [][]string{
		{"producers without messages", whole(r.BusinessPerSecond), "transactions/s"},
		{"producers without a relay", whole(r.BarePerSecond), "messages/s"},
		{"producers beside a relay", whole(r.RelayedPerSecond), "messages/s"},
		{"ratio, with the relay ÷ without it", fraction(r.Ratio), ""},
		{"ratio, with the relay ÷ without messages", fraction(r.BusinessRatio), ""},
		{"not delivered", count(r.Undelivered), "messages"},
		{"commit to confirmed, median", millis(r.P50), "ms"},
		{"commit to confirmed, 99 %", millis(r.P99), "ms"},
	}
}

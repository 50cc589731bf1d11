package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// HeldXminResult is the cost of an old open transaction.
type HeldXminResult struct {
	BaselinePerSecond float64 `json:"baseline_per_second"`
	HeldPerSecond     float64 `json:"held_per_second"`
	Ratio             float64 `json:"ratio"`
	BaselineP99       float64 `json:"p99_baseline_ms"`
	HeldP99           float64 `json:"p99_held_ms"`
	DeadTuples        int64   `json:"dead_tuples"`
}

// HeldXmin measures producers at full load with a relay, without and with an old transaction that
// blocks vacuum. Rates count delivered messages; dead tuples are those of the log at the end.
func HeldXmin(ctx context.Context, l *Lab) (HeldXminResult, error) {
	b := newBook()
	p, err := l.hire(ctx, b)
	if err != nil {
		return HeldXminResult{}, err
	}
	defer p.dismiss()
	if err := l.warmUp(ctx, p); err != nil {
		return HeldXminResult{}, err
	}

	var baseline, held side
	for round := 1; round <= l.Rounds; round++ {
		phase, err := l.relayedPhase(ctx, p, discarding(b), fmt.Sprintf("round %d of %d, baseline", round, l.Rounds))
		if err != nil {
			return HeldXminResult{}, err
		}
		baseline.add(b, phase)
		phase, err = l.heldPhase(ctx, p, fmt.Sprintf("round %d of %d, with an old transaction", round, l.Rounds))
		if err != nil {
			return HeldXminResult{}, err
		}
		held.add(b, phase)
	}
	if missing := b.undelivered(); missing > 0 {
		return HeldXminResult{}, fmt.Errorf("bench: %d messages were not delivered", missing)
	}
	p.dismiss() // sessions report their last statistics when they end
	dead, err := l.deadTuples(ctx, b.committed.Load())
	return HeldXminResult{
		BaselinePerSecond: rounded(median(baseline.rates), 1),
		HeldPerSecond:     rounded(median(held.rates), 1),
		Ratio:             rounded(quotient(median(held.rates), median(baseline.rates)), 4),
		BaselineP99:       milliseconds(percentile(baseline.latencies, 0.99)),
		HeldP99:           milliseconds(percentile(held.latencies, 0.99)),
		DeadTuples:        dead,
	}, err
}

// side collects the phases of one side of the comparison.
type side struct {
	rates     []float64
	latencies []int64
}

func (s *side) add(b *book, phase load) {
	s.rates = append(s.rates, phase.deliveredPerSecond())
	s.latencies = append(s.latencies, b.latencies(phase.first, phase.end)...)
}

// heldPhase measures full load while another connection holds a transaction with a snapshot and an
// ID.
func (l *Lab) heldPhase(ctx context.Context, p *producers, what string) (phase load, err error) {
	release, err := l.holdXmin(ctx)
	if err != nil {
		return load{}, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return l.relayedPhase(ctx, p, discarding(p.book), what)
}

// holdXmin begins a transaction that blocks vacuum, and returns a function to end it.
func (l *Lab) holdXmin(ctx context.Context) (release func() error, err error) {
	conn, err := l.admin.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	old, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = old.Exec(ctx, "SELECT pg_current_xact_id()")
	}
	if err != nil {
		conn.Release()
		return nil, err
	}
	return func() error {
		defer conn.Release()
		return old.Rollback(context.WithoutCancel(ctx))
	}, nil
}

// deadTuples returns the dead tuples of the log from the server's statistics. The statistics are
// delayed: it waits until they include all inserts.
func (l *Lab) deadTuples(ctx context.Context, inserts int64) (int64, error) {
	l.Progress("waiting for the server's statistics")
	deadline := time.Now().Add(progressTimeout)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var inserted, dead int64
		err := l.admin.QueryRow(ctx, `SELECT coalesce(sum(n_tup_ins), 0), coalesce(sum(n_dead_tup), 0)
			FROM pg_stat_user_tables WHERE schemaname = $1 AND relname LIKE 'messages\_%'`, l.schema).Scan(&inserted, &dead)
		if err != nil {
			return 0, err
		}
		if inserted >= inserts {
			return dead, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("bench: the server's statistics know of %d inserts only, of %d", inserted, inserts)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Table implements [Result].
func (r HeldXminResult) Table() [][]string {
	return [][]string{
		{"without an old transaction", whole(r.BaselinePerSecond), "messages/s"},
		{"with an old transaction", whole(r.HeldPerSecond), "messages/s"},
		{"ratio", fraction(r.Ratio), ""},
		{"commit to confirmed, 99 %, without", millis(r.BaselineP99), "ms"},
		{"commit to confirmed, 99 %, with", millis(r.HeldP99), "ms"},
		{"dead tuples in the log", count(r.DeadTuples), ""},
	}
}

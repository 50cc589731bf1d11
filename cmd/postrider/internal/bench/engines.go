package bench

import (
	"context"
	"errors"
	"fmt"
)

// EngineFigures are the figures of one engine.
type EngineFigures struct {
	Engine string `json:"engine"`
	// Producers at full load: messages committed per second without a relay, and delivered with
	// one.
	BarePerSecond    float64 `json:"bare_per_second"`
	RelayedPerSecond float64 `json:"relayed_per_second"`
	Ratio            float64 `json:"ratio"`
	P50              float64 `json:"p50_ms"`
	P99              float64 `json:"p99_ms"`
	// The same with an old open transaction.
	HeldPerSecond float64 `json:"held_per_second"`
	HeldRatio     float64 `json:"held_ratio"` // to relayed
	HeldP99       float64 `json:"held_p99_ms"`
	Waste         int64   `json:"waste"` // old row versions that cannot be removed at the end of that phase
	// A backlog, delivered to a sink that discards it.
	DrainPerSecond float64 `json:"drain_per_second"`
}

// EnginesResult compares the log with the classic engine.
type EnginesResult struct {
	Engines []EngineFigures `json:"engines"`
}

// contestant is a measured engine.
type contestant struct {
	engine
	name  string
	fill  func(ctx context.Context, first, end int64) error
	hold  func(ctx context.Context) (release func() error, err error)
	waste func(ctx context.Context) (int64, error)

	book          *book
	producers     *producers
	bare          []float64
	relayed, held side
	drained       []float64
	left          int64 // old row versions at the end of the latest phase with an old transaction
}

// Engines measures the engines in turn, round by round, so that all are affected alike by other
// load on the machine. Rates are medians.
func Engines(ctx context.Context, l *Lab) (result EnginesResult, err error) {
	all, remove, err := l.contestants(ctx)
	defer func() { err = errors.Join(err, remove(ctx)) }()
	if err != nil {
		return EnginesResult{}, err
	}
	for _, c := range all {
		l.engine, c.book = c.engine, newBook()
		if c.producers, err = l.hire(ctx, c.book); err != nil {
			return EnginesResult{}, err
		}
		defer c.producers.dismiss()
		if err := l.warmUp(ctx, c.producers); err != nil {
			return EnginesResult{}, err
		}
	}
	for round := 1; round <= l.Rounds; round++ {
		for _, c := range all {
			if err := l.engineRound(ctx, c, fmt.Sprintf("round %d of %d, %s", round, l.Rounds, c.name)); err != nil {
				return EnginesResult{}, err
			}
		}
	}
	for _, c := range all {
		result.Engines = append(result.Engines, c.figures())
	}
	return result, nil
}

// contestants creates the engines that can be measured here. It returns them, and a function that
// removes what they leave behind.
func (l *Lab) contestants(ctx context.Context) (all []*contestant, remove func(context.Context) error, err error) {
	log := logEngine{l}
	all = append(all, &contestant{engine: log, name: "log on PostgreSQL", fill: l.fill, hold: l.holdXmin, waste: log.waste})
	engines := map[string]*classicEngine{"classic on PostgreSQL": l.classicHere()}
	names := []string{"classic on PostgreSQL"}
	if l.MySQL != "" {
		engines["classic on MariaDB"], names = l.classicAt(l.MySQL), append(names, "classic on MariaDB")
	}
	var removals []func(context.Context) error
	remove = func(ctx context.Context) error {
		var errs []error
		for _, f := range removals {
			errs = append(errs, f(ctx))
		}
		return errors.Join(errs...)
	}
	for _, name := range names {
		e := engines[name]
		end, err := e.layOut(ctx)
		if end != nil {
			removals = append(removals, end)
		}
		if err != nil {
			return nil, remove, err
		}
		all = append(all, &contestant{engine: e, name: name, fill: e.fill, hold: e.hold, waste: e.waste})
	}
	return all, remove, nil
}

// engineRound measures one engine once: producers alone, with a relay, with a relay and an old
// transaction, and a backlog.
func (l *Lab) engineRound(ctx context.Context, c *contestant, what string) error {
	l.engine = c.engine
	alone, err := l.loadPhase(ctx, c.producers, what+", without a relay")
	if err != nil {
		return err
	}
	c.bare = append(c.bare, alone.committedPerSecond())
	beside, err := l.relayedPhase(ctx, c.producers, discarding(c.book), what+", with the relay")
	if err != nil {
		return err
	}
	c.relayed.add(c.book, beside)

	release, err := c.hold(ctx)
	if err != nil {
		return err
	}
	held, err := l.relayedPhase(ctx, c.producers, discarding(c.book), what+", with an old transaction")
	if err == nil {
		c.left, err = c.waste(ctx)
	}
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	c.held.add(c.book, held)
	if missing := c.book.undelivered(); missing > 0 {
		return fmt.Errorf("bench: %d messages were not delivered", missing)
	}
	return l.engineDrain(ctx, c)
}

// engineDrain delivers a backlog through the feed that has delivered everything else, as after an
// outage of its destination.
func (l *Lab) engineDrain(ctx context.Context, c *contestant) error {
	b := newBook()
	total := int64(l.Messages)
	b.reserve(total)
	if err := c.fill(ctx, 0, total); err != nil {
		return err
	}
	rate, missing, err := l.drainBacklog(ctx, defaultFeed, discarding(b), b)
	if err == nil && missing > 0 {
		err = fmt.Errorf("bench: %d messages were not delivered", missing)
	}
	c.drained = append(c.drained, rate)
	return err
}

func (c *contestant) figures() EngineFigures {
	relayed := median(c.relayed.rates)
	return EngineFigures{
		Engine:           c.name,
		BarePerSecond:    rounded(median(c.bare), 1),
		RelayedPerSecond: rounded(relayed, 1),
		Ratio:            rounded(quotient(relayed, median(c.bare)), 4),
		P50:              milliseconds(percentile(c.relayed.latencies, 0.50)),
		P99:              milliseconds(percentile(c.relayed.latencies, 0.99)),
		HeldPerSecond:    rounded(median(c.held.rates), 1),
		HeldRatio:        rounded(quotient(median(c.held.rates), relayed), 4),
		HeldP99:          milliseconds(percentile(c.held.latencies, 0.99)),
		Waste:            c.left,
		DrainPerSecond:   rounded(median(c.drained), 1),
	}
}

// Table implements [Result].
func (r EnginesResult) Table() [][]string {
	rows := [][]string{{""}}
	for _, e := range r.Engines {
		rows[0] = append(rows[0], e.Engine)
	}
	row := func(what string, value func(EngineFigures) string) {
		cells := []string{what}
		for _, e := range r.Engines {
			cells = append(cells, value(e))
		}
		rows = append(rows, cells)
	}
	row("producers without a relay, messages/s", func(e EngineFigures) string { return whole(e.BarePerSecond) })
	row("delivered beside a relay, messages/s", func(e EngineFigures) string { return whole(e.RelayedPerSecond) })
	row("ratio", func(e EngineFigures) string { return fraction(e.Ratio) })
	row("commit to confirmed, median, ms", func(e EngineFigures) string { return millis(e.P50) })
	row("commit to confirmed, 99 %, ms", func(e EngineFigures) string { return millis(e.P99) })
	row("with an old transaction, messages/s", func(e EngineFigures) string { return whole(e.HeldPerSecond) })
	row("ratio to without", func(e EngineFigures) string { return fraction(e.HeldRatio) })
	row("commit to confirmed then, 99 %, ms", func(e EngineFigures) string { return millis(e.HeldP99) })
	row("old versions of rows then", func(e EngineFigures) string { return count(e.Waste) })
	row("a backlog, messages/s", func(e EngineFigures) string { return whole(e.DrainPerSecond) })
	return rows
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// ScalePlan configures what [Scale] measures in addition to the base layout.
type ScalePlan struct {
	Quick     bool          // only a few layouts, as a test
	Databases int           // maximum number in one server
	Brokers   []ScaleBroker // whose clients the relays use in turn
	Command   string        // recorded in the result
	Build     string
}

// ScaleBroker is a real destination.
type ScaleBroker struct {
	Driver   broker.Driver
	Settings broker.Settings
}

// ScaleResult is the cost of messages. "postrider plan --constants" reads its JSON.
type ScaleResult struct{ scale.Set }

// scaleRun is one run of the scenario.
type scaleRun struct {
	ScalePlan
	lab       *Lab // base layout; its own schema holds the backlog of the drain
	meter     *meter
	set       scale.Set
	databases databases // created on first use
	schemas   int
	filled    bool
}

// Scale measures the cost of messages for the database server and the relays, in many layouts in
// turn, round by round. Relays are separate processes. Other clients must not use the server
// meanwhile.
func Scale(ctx context.Context, l *Lab, plan ScalePlan) (_ ScaleResult, err error) {
	m, err := newMeter(ctx, l.admin)
	if err != nil {
		return ScaleResult{}, err
	}
	s := &scaleRun{ScalePlan: plan, lab: l, meter: m}
	s.databases = databases{lab: l, open: func(ctx context.Context, config *pgxpool.Config) (*Lab, error) {
		return s.open(ctx, config, l.Payload, l.Shards)
	}}
	defer func() { err = errors.Join(err, s.databases.drop(ctx)) }()
	if err := s.describe(ctx); err != nil {
		return ScaleResult{}, err
	}
	if s.set.Sequence, err = s.sequence(ctx); err != nil {
		return ScaleResult{}, err
	}
	s.set.Cells = s.cells()
	for round := 1; round <= l.Rounds; round++ {
		if err := s.business(ctx, round); err != nil {
			return ScaleResult{}, err
		}
		for i := range s.set.Cells {
			if round > 1 && len(s.set.Cells[i].Relayed) == 0 {
				continue // left out
			}
			if err := s.measure(ctx, i, fmt.Sprintf("round %d of %d, %s", round, l.Rounds, label(s.set.Cells[i]))); err != nil {
				return ScaleResult{}, fmt.Errorf("bench: %s: %w", label(s.set.Cells[i]), err)
			}
		}
	}
	s.set.Cells = measuredCells(s.set.Cells)
	return ScaleResult{s.set}, nil
}

// measuredCells leaves out cells that were not measured; [scale.Set.LeftOut] has the reasons.
func measuredCells(all []scale.Cell) (measured []scale.Cell) {
	for _, c := range all {
		if len(c.Relayed) > 0 {
			measured = append(measured, c)
		}
	}
	return measured
}

// describe records the machine, the server and the parameters.
func (s *scaleRun) describe(ctx context.Context) error {
	s.set.Taken, s.set.Command, s.set.Build = time.Now().UTC().Truncate(time.Second), s.Command, s.Build
	s.set.Seconds, s.set.Rounds, s.set.Writers = s.lab.Phase.Seconds(), s.lab.Rounds, s.lab.Writers
	s.set.Machine = scale.Machine{
		Processor: processorName(), Cores: runtime.NumCPU(), Memory: machineMemory(), System: runtime.GOOS + "/" + runtime.GOARCH,
	}
	s.set.Server = scale.Server{Version: s.lab.Server, Settings: make(map[string]string)}
	for _, name := range []string{"shared_buffers", "max_connections", "fsync", "synchronous_commit", "full_page_writes", "wal_level",
		"max_wal_size", "checkpoint_timeout", "wal_compression"} {
		var value string
		if err := s.lab.admin.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return err
		}
		s.set.Server.Settings[name] = value
	}
	return nil
}

// cells returns the layouts to measure, the base first.
func (s *scaleRun) cells() []scale.Cell {
	base := scale.Cell{Series: scale.Base, Payload: s.lab.Payload, Shards: s.lab.Shards, Relays: 1, Feeds: 1, Databases: 1, To: "discard"}
	payloads, shards, relays, feeds, rates := []int{100, 10 << 10}, []int{1, 2, 4, 16}, []int{2, 3, 4}, []int{2, 4}, []int{20, 100, 500, 2000, 4000}
	databases, checked := []int{5, 20, 50}, 1000
	if s.Quick {
		payloads, shards, relays, feeds, rates = []int{10 << 10}, []int{1}, []int{2}, []int{2}, []int{20, 200}
		databases, checked = []int{3}, 100
	}
	cells := []scale.Cell{base}
	vary := func(series string, values []int, set func(*scale.Cell, int)) {
		for _, v := range values {
			c := base
			c.Series = series
			set(&c, v)
			cells = append(cells, c)
		}
	}
	vary(scale.Idle, []int{1}, func(*scale.Cell, int) {})
	vary(scale.Payload, payloads, func(c *scale.Cell, v int) { c.Payload = v })
	vary(scale.Shards, shards, func(c *scale.Cell, v int) { c.Shards = v })
	vary(scale.Relays, relays, func(c *scale.Cell, v int) { c.Relays = v })
	vary(scale.Feeds, feeds, func(c *scale.Cell, v int) { c.Feeds = v })
	vary(scale.Rate, rates, func(c *scale.Cell, v int) { c.Rate = v })
	vary(scale.Drain, []int{1}, func(*scale.Cell, int) {})
	for _, b := range s.Brokers {
		vary(scale.Broker, []int{1}, func(c *scale.Cell, _ int) { c.To = b.Driver.Name })
	}
	for _, n := range databases {
		if n <= s.ScalePlan.Databases {
			vary(scale.Databases, []int{n}, func(c *scale.Cell, v int) { c.Databases = v })
			vary(scale.Idle, []int{n}, func(c *scale.Cell, v int) { c.Databases = v })
		}
	}
	vary(scale.Check, relays[:1], func(c *scale.Cell, v int) { c.Relays, c.Rate = v, checked })
	vary(scale.Check, feeds[:1], func(c *scale.Cell, v int) { c.Feeds, c.Rate = v, checked })
	if databases[0] <= s.ScalePlan.Databases {
		vary(scale.Check, databases[:1], func(c *scale.Cell, v int) { c.Databases, c.Rate = v, checked })
	}
	return cells
}

// label describes a cell.
func label(c scale.Cell) string {
	switch c.Series {
	case scale.Payload:
		return fmt.Sprintf("%d bytes", c.Payload)
	case scale.Shards:
		return fmt.Sprintf("%d shards", c.Shards)
	case scale.Relays:
		return fmt.Sprintf("%d relays", c.Relays)
	case scale.Feeds:
		return fmt.Sprintf("%d feeds", c.Feeds)
	case scale.Databases:
		return fmt.Sprintf("%d databases", c.Databases)
	case scale.Idle:
		return fmt.Sprintf("%d databases, idle", c.Databases)
	case scale.Rate:
		return fmt.Sprintf("%d messages/s", c.Rate)
	case scale.Check:
		return fmt.Sprintf("%d messages/s, relays %d, feeds %d, databases %d", c.Rate, c.Relays, c.Feeds, c.Databases)
	case scale.Broker:
		return "to " + c.To
	}
	return c.Series
}

// measure measures a cell once.
func (s *scaleRun) measure(ctx context.Context, i int, what string) error {
	c := &s.set.Cells[i]
	if c.Series == scale.Drain {
		return s.drain(ctx, c, what)
	}
	if c.Databases > 1 {
		return s.acrossDatabases(ctx, c, what)
	}
	lab, err := s.open(ctx, s.lab.config, c.Payload, c.Shards)
	if err != nil {
		return err
	}
	err = s.inLabs(ctx, c, []*Lab{lab}, what)
	return errors.Join(err, lab.Close(ctx))
}

// open creates a schema for one cell.
func (s *scaleRun) open(ctx context.Context, config *pgxpool.Config, payload, shards int) (*Lab, error) {
	o := s.lab.Options
	o.Payload, o.Shards, o.Progress = payload, shards, nil
	config = config.Copy()
	config.ConnConfig.RuntimeParams["application_name"] = producerName
	s.schemas++
	lab, err := openNamed(ctx, config, o, fmt.Sprintf("postrider_bench_%d_%d", os.Getpid(), s.schemas))
	if err != nil {
		return nil, err
	}
	lab.Progress = s.lab.Progress
	return lab, nil
}

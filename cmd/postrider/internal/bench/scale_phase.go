package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
	"github.com/postrider/postrider/internal/sleep"
)

// inLabs measures a cell in existing schemas: producers alone, then with relays.
func (s *scaleRun) inLabs(ctx context.Context, c *scale.Cell, labs []*Lab, what string) (err error) {
	p, err := s.hire(ctx, labs)
	if err != nil {
		return err
	}
	defer p.dismiss()
	empty, err := logSize(ctx, labs)
	if err != nil {
		return err
	}
	if c.Series != scale.Idle {
		if err := s.lab.warmUp(ctx, p); err != nil {
			return err
		}
	}
	if c.Series != scale.Idle && c.Rate == 0 {
		bare, err := s.phase(ctx, c, p, nil, what+", without a relay")
		if err != nil {
			return err
		}
		filled, err := logSize(ctx, labs)
		if err != nil {
			return err
		}
		c.Bare = append(c.Bare, bare)
		c.Disk = rounded(quotient(float64(filled-empty), float64(p.book.committed.Load())), 1)
	}
	to, err := s.destination(ctx, c.To)
	if err != nil {
		return err
	}
	a := assignment{relays: c.Relays, labs: labs, to: to, connections: s.relayConnections(len(labs) * c.Feeds)}
	for n := range c.Feeds {
		a.feeds = append(a.feeds, fmt.Sprintf("scale%d", n+1))
	}
	s.lab.Progress(what + ", starting relays")
	t, err := s.lab.startTeam(ctx, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	if err := awaitDelivered(ctx, labs); err != nil {
		return err
	}
	relayed, err := s.phase(ctx, c, p, t, what)
	if err != nil {
		return err
	}
	c.Relayed = append(c.Relayed, relayed)
	return awaitDelivered(ctx, labs)
}

// hire opens connections for the producers of a cell, divided among its databases.
func (s *scaleRun) hire(ctx context.Context, labs []*Lab) (*producers, error) {
	each := s.lab.Writers
	if len(labs) > 1 {
		each = s.lab.Writers/len(labs) + 2
	}
	var all spread
	for _, lab := range labs {
		shop, err := lab.engine.hire(ctx, each)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, shop)
	}
	return labs[0].producersAt(all, newBook()), nil
}

// spread is a shop over several databases. It distributes numbers round-robin.
type spread []shop

func (s spread) commit(ctx context.Context, order, number int64, m postrider.Message) error {
	return s[int(number)%len(s)].commit(ctx, order, number, m)
}

func (s spread) close() {
	for _, shop := range s {
		shop.close()
	}
}

// phase measures producers for the length of a phase, at full load or at the cell's rate, or
// nothing if the cell is idle.
func (s *scaleRun) phase(ctx context.Context, c *scale.Cell, p *producers, t *team, what string) (phase scale.Phase, err error) {
	length := s.lab.Phase
	if c.Series == scale.Idle {
		length *= 3 // there is little to measure
	}
	defer s.lab.counting(what, length)()
	var begin, end tally
	if t != nil {
		if begin, err = t.count(ctx); err != nil {
			return phase, err
		}
	}
	before, err := s.meter.read(ctx)
	if err != nil {
		return phase, err
	}
	drawn := p.book.committed.Load()
	switch {
	case c.Series == scale.Idle:
		sleep.For(ctx, length)
		err = ctx.Err()
	case c.Rate > 0:
		err = p.steady(ctx, c.Rate, length)
	default:
		err = p.fullLoad(ctx, length)
	}
	if err != nil {
		return phase, err
	}
	after, err := s.meter.read(ctx)
	if err != nil {
		return phase, err
	}
	phase = after.since(before)
	phase.Messages = p.book.committed.Load() - drawn
	if t != nil {
		if end, err = t.count(ctx); err != nil {
			return phase, err
		}
		end.addTo(&phase, begin)
	}
	return phase, nil
}

// awaitDelivered waits until no feed of the labs has a backlog.
func awaitDelivered(ctx context.Context, labs []*Lab) error {
	for _, lab := range labs {
		db, err := lab.open(lab.admin)
		if err != nil {
			return err
		}
		var seen int64 = -1
		since := time.Now()
		for {
			standing, err := db.Admin().Gauges(ctx)
			if err != nil {
				return err
			}
			var pending int64
			for _, feed := range standing.Feeds {
				pending += feed.Pending.N
			}
			if pending == 0 {
				break
			}
			if pending != seen {
				seen, since = pending, time.Now()
			}
			if time.Since(since) > progressTimeout {
				return fmt.Errorf("bench: %d messages are not delivered", pending)
			}
			lab.progressf("%d messages to deliver", pending)
			if !sleep.For(ctx, 100*time.Millisecond) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// logSize returns the size of the messages of all labs on disk, with their indexes.
func logSize(ctx context.Context, labs []*Lab) (sum int64, err error) {
	for _, lab := range labs {
		size, err := lab.sizeOf(ctx, "messages")
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}

// sizeOf returns the size of a table, with its partitions and indexes.
func (l *Lab) sizeOf(ctx context.Context, table string) (size int64, err error) {
	err = l.admin.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM pg_partition_tree($1::regclass)`,
		l.in("@schema@."+table)).Scan(&size)
	return size, err
}

// business measures the producers' transactions without messages.
func (s *scaleRun) business(ctx context.Context, round int) (err error) {
	lab, err := s.open(ctx, s.lab.config, s.lab.Payload, s.lab.Shards)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close(ctx)) }()
	p, err := s.hire(ctx, []*Lab{lab})
	if err != nil {
		return err
	}
	defer p.dismiss()
	p.shop = silent{p.shop.(spread)[0].(*logShop)} //nolint:errcheck // hired above
	if err := s.lab.warmUp(ctx, p); err != nil {
		return err
	}
	phase, err := s.phase(ctx, &scale.Cell{}, p, nil, fmt.Sprintf("round %d of %d, business alone", round, s.lab.Rounds))
	s.set.Business = append(s.set.Business, phase)
	return err
}

// silent is a shop that writes no messages.
type silent struct{ *logShop }

func (s silent) commit(ctx context.Context, order, number int64, _ postrider.Message) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it does nothing, after an error the first error counts
	if _, err := tx.Exec(ctx, s.insert, order, number); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

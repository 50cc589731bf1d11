package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/scale"
	"github.com/postrider/postrider/internal/sleep"
)

// acrossDatabases measures a cell with several databases on the same server.
func (s *scaleRun) acrossDatabases(ctx context.Context, c *scale.Cell, what string) error {
	need := perDatabase*c.Databases + s.producerConnections(c.Databases) + spare
	if have, err := s.databases.free(ctx); err != nil {
		return err
	} else if need > have {
		s.leave(*c, "they need %d connections, and the server has %d to give", need, have)
		return nil
	}
	if err := s.databases.grow(ctx, c.Databases); err != nil {
		if mayNot(err) {
			s.leave(*c, "the user may not create databases")
			return nil
		}
		return err
	}
	return s.inLabs(ctx, c, s.databases.labs[:c.Databases], what)
}

func (s *scaleRun) producerConnections(databases int) int {
	return databases * (s.lab.Writers/databases + 2)
}

// relayConnections returns the "connections" setting of a relay process for so many feeds. 0 means
// the default of four per feed, if the server has enough.
func (s *scaleRun) relayConnections(feeds int) int {
	limit, err := strconv.Atoi(s.set.Server.Settings["max_connections"])
	if err != nil || feeds < 2 {
		return 0
	}
	free := limit - s.producerConnections(feeds) - len(s.databases.labs) - 2 - spare
	if free >= relayConnections*feeds {
		return 0
	}
	return max(free, perDatabase*feeds)
}

// leave records that a cell is not measured.
func (s *scaleRun) leave(c scale.Cell, format string, args ...any) {
	s.set.LeftOut = append(s.set.LeftOut, label(c)+": "+fmt.Sprintf(format, args...))
}

// destination returns where the relays of a cell send to. A broker gets a new name each time.
func (s *scaleRun) destination(ctx context.Context, to string) (destination, error) {
	for _, b := range s.Brokers {
		if b.Driver.Name != to {
			continue
		}
		settings := b.Settings
		d := destination{settings.URL, fmt.Sprintf("postrider-bench-%d", time.Now().UnixNano()), settings.Values}
		if b.Driver.Create == nil {
			return d, nil
		}
		return d, b.Driver.Create(ctx, &settings, d.name)
	}
	return nowhere, nil
}

// drain measures one relay that delivers a backlog as fast as possible.
func (s *scaleRun) drain(ctx context.Context, c *scale.Cell, what string) (err error) {
	total := int64(s.lab.Messages)
	if !s.filled {
		if err := s.lab.fill(ctx, 0, total); err != nil {
			return err
		}
		s.filled = true
	}
	s.lab.Progress(what)
	t, err := s.lab.startTeam(ctx, assignment{relays: 1, labs: []*Lab{s.lab}, feeds: []string{fmt.Sprintf("drain%d", len(c.Relayed)+1)}, to: nowhere})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	begin, err := t.count(ctx)
	if err != nil {
		return err
	}
	before, err := s.meter.read(ctx)
	if err != nil {
		return err
	}
	for now := begin; now.published < total; {
		if !sleep.For(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
		if time.Since(before.at) > 10*progressTimeout {
			return fmt.Errorf("bench: %d of %d messages were delivered", now.published, total)
		}
		if now, err = t.count(ctx); err != nil {
			return err
		}
	}
	after, err := s.meter.read(ctx)
	if err != nil {
		return err
	}
	end, err := t.count(ctx)
	if err != nil {
		return err
	}
	phase := after.since(before)
	end.addTo(&phase, begin)
	c.Relayed = append(c.Relayed, phase)
	return nil
}

// sequence measures how many numbers per second one sequence assigns to all writers together.
func (s *scaleRun) sequence(ctx context.Context) (float64, error) {
	s.lab.Progress("one sequence, asked by all")
	pool, err := s.lab.pool(ctx, s.lab.Writers)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if _, err := s.lab.admin.Exec(ctx, s.lab.in("CREATE SEQUENCE @schema@.probe")); err != nil {
		return 0, err
	}
	const step = 10_000
	draw := s.lab.in(fmt.Sprintf("SELECT count(nextval('@schema@.probe')) FROM generate_series(1, %d)", step))
	var drawn atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, s.lab.Writers)
	start := time.Now()
	for w := range s.lab.Writers {
		wg.Go(func() {
			for time.Since(start) < s.lab.Phase && errs[w] == nil {
				if _, errs[w] = pool.Exec(ctx, draw); errs[w] == nil {
					drawn.Add(step)
				}
			}
		})
	}
	wg.Wait()
	return rounded(perSecond(drawn.Load(), time.Since(start)), 0), errors.Join(errs...)
}

package trial

import (
	"context"
	"time"

	"github.com/postrider/postrider/test/proof/peers/result"
)

// bare measures producers that enqueue nothing.
func bare(ctx context.Context, s *session) ([]result.Cell, error) {
	if err := s.full(ctx, s.lab.Warm); err != nil {
		return nil, err
	}
	return plus(nil)(s.phase(ctx, result.Bare, s.full))
}

// steady measures the time from commit to arrival at a steady rate, then the rate at full speed, of
// one relay.
func steady(ctx context.Context, s *session) ([]result.Cell, error) {
	if err := s.warm(ctx, 1); err != nil {
		return nil, err
	}
	latency, err := s.latency(ctx, result.Latency)
	if err != nil {
		return nil, err
	}
	return plus([]result.Cell{latency})(s.phase(ctx, result.Sustained, s.full))
}

// drain measures producers without a relay, which is the same on all brokers, and then how fast a
// relay delivers their backlog and some more messages.
func drain(ctx context.Context, s *session) (cells []result.Cell, err error) {
	if s.job.Broker == s.lab.Main {
		if err := s.full(ctx, s.lab.Warm); err != nil {
			return nil, err
		}
		alone, err := s.phase(ctx, result.Alone, s.full)
		if err != nil {
			return nil, err
		}
		cells = append(cells, alone)
	}
	if err := s.fill(ctx, int64(s.lab.Backlog)-s.book.committed.Load()); err != nil {
		return cells, interrupted("filling", err)
	}
	// Statistics like those of a server that has been running for a while.
	if _, err := s.db.admin.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return cells, err
	}
	return plus(cells)(s.backlog(ctx))
}

// backlog starts a relay and measures it from the first arrival to the last, or to the time limit.
func (s *session) backlog(ctx context.Context) (c result.Cell, err error) {
	if err := s.start(1); err != nil {
		return c, err
	}
	for deadline := time.Now().Add(startup); s.book.arrived.Load() == 0; {
		if time.Now().After(deadline) {
			return c, errIdle
		}
		if err := s.relays[0].failed(); err != nil {
			return c, err
		}
		if err := s.book.await(ctx, 1, deadline, time.Second); err != nil {
			return c, err
		}
	}
	from, err := s.read(ctx)
	if err != nil {
		return c, err
	}
	if err := s.book.await(ctx, s.book.committed.Load(), time.Now().Add(s.lab.Cap), s.lab.Cap); err != nil {
		return c, err
	}
	to, err := s.read(ctx)
	if err != nil {
		return c, err
	}
	// A fast relay has delivered much before the first reading was complete.
	from.at, from.arrived = s.book.start.Add(time.Duration(s.book.first.Load())), 0
	if to.arrived == to.committed {
		to.at = s.book.start.Add(time.Duration(s.book.last.Load()))
	}
	return s.cell(ctx, result.Drain, from, to)
}

// held measures both beside a transaction that stays open: a steady rate until it is old, then full
// speed.
func held(ctx context.Context, s *session) ([]result.Cell, error) {
	if err := s.warm(ctx, 1); err != nil {
		return nil, err
	}
	release, err := s.db.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	began := time.Now()
	if err := s.even(ctx, max(0, s.lab.Hold-2*s.lab.Phase)); err != nil {
		return nil, err
	}
	latency, err := s.latency(ctx, result.HeldLatency)
	if err != nil {
		return nil, err
	}
	latency.Held = result.Rounded(time.Since(began).Seconds(), 1)
	sustained, err := s.phase(ctx, result.HeldSustained, s.full)
	sustained.Held = result.Rounded(time.Since(began).Seconds(), 1)
	return plus([]result.Cell{latency})(sustained, err)
}

// order has writers of the same keys commit concurrently, and compares what arrives with what was
// committed.
func order(ctx context.Context, s *session) ([]result.Cell, error) {
	if err := s.start(s.peer.Relays()); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	c, err := s.phase(ctx, result.Order, s.tangled)
	if err != nil {
		return nil, err
	}
	if err := s.book.await(ctx, s.book.committed.Load(), time.Now().Add(time.Minute), 5*time.Second); err != nil {
		return nil, err
	}
	c.Keys = tangledKeys
	c.Delivered = s.book.arrived.Load()
	c.Lost, c.Phantoms = s.book.check()
	c.Duplicates = s.book.duplicates.Load()
	c.Inversions = s.book.inversions.Load()
	return []result.Cell{c}, nil
}

// warm starts relays and warms them and the producers up.
func (s *session) warm(ctx context.Context, relays int) error {
	if err := s.start(relays); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.even(ctx, s.lab.Warm)
}

// phase measures while producers work.
func (s *session) phase(ctx context.Context, work string, load func(context.Context, time.Duration) error) (result.Cell, error) {
	c, _, _, err := s.between(ctx, work, load)
	return c, err
}

// latency measures a steady rate, and gives the last messages a moment to arrive.
func (s *session) latency(ctx context.Context, work string) (result.Cell, error) {
	c, from, to, err := s.between(ctx, work, s.even)
	if err != nil {
		return c, err
	}
	if err := s.book.await(ctx, to.committed, time.Now().Add(2*time.Second), 2*time.Second); err != nil {
		return c, err
	}
	times, waiting := s.book.latencies(from.number, to.number)
	c.Waiting = waiting
	c.P50, c.P99, c.Max = milliseconds(times, 0.50), milliseconds(times, 0.99), milliseconds(times, 1)
	return c, nil
}

// between measures a cell under a load, and also returns the readings before and after.
func (s *session) between(ctx context.Context, work string, load func(context.Context, time.Duration) error) (c result.Cell, from, to reading, err error) {
	if from, err = s.read(ctx); err != nil {
		return c, from, to, err
	}
	if err := load(ctx, s.lab.Phase); err != nil {
		return c, from, to, interrupted(work, err)
	}
	if to, err = s.read(ctx); err != nil {
		return c, from, to, err
	}
	c, err = s.cell(ctx, work, from, to)
	return c, from, to, err
}

func milliseconds(times []int64, share float64) float64 {
	return result.Rounded(float64(result.Percentile(times, share))/1e6, 2)
}

// plus appends a cell unless it failed.
func plus(cells []result.Cell) func(result.Cell, error) ([]result.Cell, error) {
	return func(c result.Cell, err error) ([]result.Cell, error) {
		if err != nil {
			return cells, err
		}
		return append(cells, c), nil
	}
}

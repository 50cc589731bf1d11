package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// soak runs at a steady rate, and takes samples.
func (n *line) soak(ctx context.Context, rate int, plan *SoakPlan) (samples []SoakSample, err error) {
	machine, err := newYardstick(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, machine.close()) }()
	work, end := context.WithCancel(ctx)
	defer end()
	done := make(chan error, 1)
	samples = make([]SoakSample, 0, 64)
	n.notes.take() // discard those of the calibration
	start := time.Now()
	go func() { done <- n.producers.steady(work, rate, plan.For) }()
	defer func() {
		if err != nil {
			end()
			<-done
		}
	}()
	committed, handled, before := n.notes.committed.Load(), n.notes.handled.Load(), start
	for next := start.Add(plan.interval()); ; next = next.Add(plan.interval()) {
		n.lab.progressf("%d messages/s: %.0f of %.0f s", rate, time.Since(start).Seconds(), plan.For.Seconds())
		select {
		case err := <-n.failed:
			return samples, err
		case <-ctx.Done():
			return samples, ctx.Err()
		case err := <-done:
			done <- nil // for the deferred function
			if err == nil && len(samples) == 0 {
				err = errors.New("bench: it was over before the first sample")
			}
			return samples, err
		case <-time.After(time.Until(next)):
		}
		now := time.Now()
		s := SoakSample{At: rounded(now.Sub(start).Seconds(), 1), Waiting: n.notes.waiting()}
		if s.Waiting > windowSize/2 {
			return samples, fmt.Errorf("bench: %d messages wait for their effect: the consumers do not keep up", s.Waiting)
		}
		c, h := n.notes.committed.Load(), n.notes.handled.Load()
		s.Committed = rounded(perSecond(c-committed, now.Sub(before)), 1)
		s.Handled = rounded(perSecond(h-handled, now.Sub(before)), 1)
		committed, handled, before = c, h, now
		latencies := n.notes.take()
		s.P50, s.P99 = milliseconds(percentile(latencies, 0.50)), milliseconds(percentile(latencies, 0.99))
		if s.Machine, err = machine.take(); err != nil {
			return samples, err
		}
		if err := n.look(ctx, &s); err != nil {
			return samples, err
		}
		samples = append(samples, s)
	}
}

// look adds the figures of processes and tables.
func (n *line) look(ctx context.Context, s *SoakSample) error {
	relay, err := n.team.count(ctx)
	if err != nil {
		return err
	}
	s.RelayMemory, s.RelayGoroutines, s.RelayFiles = relay.memory, relay.goroutines, relay.files
	s.Goroutines = runtime.NumGoroutine()
	if s.Memory, err = resident(os.Getpid()); err != nil {
		return err
	}
	if s.Files, err = openFiles(os.Getpid()); err != nil {
		return err
	}
	if s.Log, err = n.lab.sizeOf(ctx, "messages"); err != nil {
		return err
	}
	if s.Inbox, err = n.lab.sizeOf(ctx, "inbox"); err != nil {
		return err
	}
	return n.lab.admin.QueryRow(ctx, n.lab.in("SELECT count(*) FROM @schema@.checkpoints")).Scan(&s.LedgerRows)
}

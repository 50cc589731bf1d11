package postridertest

import (
	"context"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

const (
	// look is the interval between checks whether everything is quiet.
	look = time.Millisecond
	// quiet is how long nothing must happen before Deliver gives up. No backoff of the relay or of
	// consumers is longer.
	quiet = time.Second
	// leastLooks is how many consecutive checks must find no progress: on a busy machine, a second
	// of real time is too short.
	leastLooks = 500
	// rounds is how often Settle waits for something to become due.
	rounds = 10_000
)

// Deliver delivers everything that was committed through the relay and the broker to the handlers,
// including what the handlers enqueue, until nothing more can be done now. It does not wait for
// retries and for messages with DeliverAfter. If there is no progress for a second, for instance
// because the broker is down, it gives up, and Settled of the report is false.
func (w *World) Deliver() *Report {
	w.t.Helper()
	w.deliver()
	return w.Report()
}

// Settle is like [World.Deliver], but also waits for what becomes due later, until only dead
// letters are left. It fails the test if that takes too long. Outside of a bubble it waits in real
// time.
func (w *World) Settle() *Report {
	w.t.Helper()
	began := time.Now()
	for range rounds {
		w.deliver()
		r := w.Report()
		next := w.next()
		if !r.Settled {
			w.t.Fatalf("postridertest: %s\n%v", w.unquiet, r)
		}
		if next.IsZero() {
			return r
		}
		w.sleep(began, time.Until(next), r)
	}
	w.t.Fatalf("postridertest: something new became due %d times\n%v", rounds, w.Report())
	return nil
}

// Advance lets time pass, and delivers what becomes due meanwhile, at its time. In a bubble of
// testing/synctest it returns at once; outside of one it waits in real time.
func (w *World) Advance(d time.Duration) *Report {
	w.t.Helper()
	began := time.Now()
	end := began.Add(d)
	for {
		w.deliver()
		next := w.next()
		if next.IsZero() || next.After(end) || !time.Now().Before(end) {
			break
		}
		w.sleep(began, time.Until(next), nil)
	}
	if rest := time.Until(end); rest > 0 {
		w.sleep(began, rest, nil)
		w.deliver()
	}
	if w.bubble {
		synctest.Wait()
	}
	return w.Report()
}

// sleep lets time pass. It fails the test if that would exceed Patience in real time.
func (w *World) sleep(began time.Time, d time.Duration, r *Report) {
	w.t.Helper()
	if !w.bubble && time.Since(began)+d > w.cfg.Patience {
		text := ""
		if r != nil {
			text = "\n" + r.String()
		}
		w.t.Fatalf("postridertest: would have to wait for %s. In a bubble that takes no time: "+
			"synctest.Test(t, func(t *testing.T) { w := postridertest.New(t, …) … })%s", d.Round(time.Millisecond), text)
	}
	time.Sleep(d)
}

// deliver runs the relay and the consumers until everything is quiet.
func (w *World) deliver() {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	errs := make(chan error, len(w.carriers)+1)
	c := &carrier{world: w}
	run.Go(func() { errs <- c.run(ctx) })
	for _, consume := range w.carriers {
		run.Go(func() { errs <- consume(ctx) })
	}
	w.unquiet = w.await(c)
	stop()
	run.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			w.t.Errorf("postridertest: %v", err)
		}
	}
}

// await returns when nothing is left to do, or returns the reason why it gave up.
func (w *World) await(c *carrier) (reason string) {
	began := time.Now()
	moved, movedAt, looks := -1, began, 0
	for {
		seen := w.journal.count()
		left := w.left()
		if left == "" && w.journal.idle() && seen == w.journal.count() {
			return ""
		}
		now := time.Now()
		if n := w.journal.progress(); n != moved || !w.journal.idle() {
			moved, movedAt, looks = n, now, 0
		}
		looks++
		limit := quiet
		if c.deaths() > 0 {
			limit += 2 * w.cfg.Relay.Lease // the next relay must wait for the lease of the dead one to expire
		}
		switch {
		case now.Sub(movedAt) > limit && looks > leastLooks:
			return "nothing moves any more: " + left
		case now.Sub(began) > w.cfg.Patience:
			return fmt.Sprintf("messages keep coming after %s: %s", w.cfg.Patience, left)
		}
		time.Sleep(look)
	}
}

// left describes something that can be done now. It is empty if there is nothing.
func (w *World) left() string {
	pending, ok := w.pending()
	if !ok {
		return "the relay has not begun"
	}
	if pending > 0 {
		return fmt.Sprintf("%d messages are on their way to the broker", pending)
	}
	for _, d := range w.deferred() {
		if !d.AvailableAt.IsZero() && !d.AvailableAt.After(time.Now()) {
			return fmt.Sprintf("message %s is due at %s", d.Type, d.Feed)
		}
	}
	for _, s := range w.subs {
		if n := s.left(); n > 0 {
			return fmt.Sprintf("%d messages are on their way to %s", n, s.name)
		}
	}
	return ""
}

// next returns when something becomes due; zero if nothing does.
func (w *World) next() (next time.Time) {
	for _, d := range w.deferred() {
		at := d.AvailableAt
		if d.Status == feeds.StatusHeld { // the destination may accept messages again by then
			at = time.Now().Add(quiet)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// pending returns the number of messages that the relay has not settled. The result is false if the
// relay has not begun.
func (w *World) pending() (int, bool) {
	listed, _ := w.Store.ListFeeds(context.Background()) // cannot fail
	for _, f := range listed {
		if f.Name == w.cfg.Relay.Feed {
			return f.Pending, true
		}
	}
	return 0, false
}

func (w *World) deferred() []feeds.Deferred {
	all, _ := w.Store.List(context.Background(), admin.Filter{}, nil, 1<<30) // cannot fail
	return all
}

// carrier is a relay that is restarted when its process dies.
type carrier struct {
	world *World
	mu    sync.Mutex
	died  int
}

func (c *carrier) run(ctx context.Context) error {
	w := c.world
	for {
		process := w.Faults.Process()
		r, err := relay.New(process.Store(w.Store), w.pub, w.cfg.Relay)
		if err != nil {
			return err
		}
		life, end := process.Context(ctx)
		err = r.Run(life)
		end()
		if !process.Dead() {
			return err
		}
		c.mu.Lock()
		c.died++
		c.mu.Unlock()
		w.journal.add(Step{What: Crashed, By: "relay"})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // a crash is an expected fault
		}
	}
}

func (c *carrier) deaths() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.died
}

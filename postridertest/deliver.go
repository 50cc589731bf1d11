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
	// look is the time between two looks at whether all is quiet.
	look = time.Millisecond
	// quiet is for how long nothing must happen before Deliver gives up. No pause between two attempts of relay and
	// consumers is longer.
	quiet = time.Second
	// leastLooks is how often nothing must have happened: on a machine that is busy with something else, a second is short.
	leastLooks = 500
	// rounds is how often Settle waits for something to become due.
	rounds = 10_000
)

// Deliver carries everything that was committed through the relay and the broker to the handlers, and what these enqueue too,
// until nothing is left that could be done now. It does not wait for what has its time: retries and messages with
// DeliverAfter. If nothing moves any more, because the broker is down for instance, it gives up after a second: then
// Settled of the report is false.
func (w *World) Deliver() *Report {
	w.t.Helper()
	w.deliver()
	return w.Report()
}

// Settle is [World.Deliver], and waits for what has its time, until only dead letters are left. It fails the test if that
// takes too long. Outside of a bubble it waits in real time.
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

// Advance lets time pass, and delivers what becomes due meanwhile, at its time. In a bubble of testing/synctest that takes no
// time; outside it does.
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

// sleep lets time pass, unless that would be more real time than anybody wants to wait.
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

// deliver runs the relay and the consumers until all is quiet.
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

// await returns when nothing is left to do, or the reason why it has given up.
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
			limit += 2 * w.cfg.Relay.Lease // the next one must wait for the lease of the dead
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

// left says what could be done now. It is empty if there is nothing.
func (w *World) left() string {
	pending, ok := w.pending()
	if !ok {
		return "the relay has not begun"
	}
	if pending > 0 {
		return fmt.Sprintf("%d messages are on their way to the broker", pending)
	}
	for _, d := range w.aside() {
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
	for _, d := range w.aside() {
		at := d.AvailableAt
		if d.Status == feeds.StatusHeld { // its name may accept messages again by then
			at = time.Now().Add(quiet)
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// pending returns how many messages the relay has not settled. It is unknown before the relay has begun.
func (w *World) pending() (int, bool) {
	listed, _ := w.Store.ListFeeds(context.Background()) // cannot fail
	for _, f := range listed {
		if f.Name == w.cfg.Relay.Feed {
			return f.Pending, true
		}
	}
	return 0, false
}

func (w *World) aside() []feeds.Deferred {
	all, _ := w.Store.List(context.Background(), admin.Filter{}, nil, 1<<30) // cannot fail
	return all
}

// carrier is a relay that is started again when its process has died.
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
			return nil //nolint:nilerr // a crash is no error here
		}
	}
}

func (c *carrier) deaths() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.died
}

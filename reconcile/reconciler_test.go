package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/store/memory"
)

// world is a table of business rows with the outbox of their messages.
type world struct {
	*memory.DB
	reconcilers *memory.Reconcilers[*memory.Tx]

	mu    sync.Mutex
	rows  map[string]time.Time // rows that lack their effect, by ID
	calls int
}

func newWorld() *world {
	db := memory.Open(memory.Config{})
	return &world{DB: db, reconcilers: db.Reconciliations(), rows: make(map[string]time.Time)}
}

func (w *world) find(_ context.Context, _ *memory.Tx, since, until time.Time, limit int) (found []postrider.Message, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	for id, at := range w.rows {
		if !at.Before(since) && at.Before(until) && len(found) < limit {
			found = append(found, row(id))
		}
	}
	return found, nil
}

func row(id string) postrider.Message {
	return postrider.UniqueEvent("row.added", postrider.Aggregate{Type: "row", ID: id}, id)
}

func (w *world) lack(n int, at time.Time, apart time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range n {
		w.rows[fmt.Sprintf("%d-%d", at.UnixNano(), i)] = at.Add(time.Duration(i) * apart)
	}
}

func (w *world) reconciler(t *testing.T, cfg reconcile.Config, jobs ...reconcile.Job[*memory.Tx]) *reconcile.Reconciler[*memory.Tx] {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	p, err := reconcile.New(w.reconcilers, w.DB, w.DB, cfg, jobs...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t *testing.T, p *reconcile.Reconciler[*memory.Tx], o reconcile.Options, found, fixed int64) {
	t.Helper()
	run, err := p.RunNow(t.Context(), "rows", o)
	if err != nil || run.Found != found || run.Fixed != fixed {
		t.Fatalf("found %d, fixed %d, err %v; want %d and %d", run.Found, run.Fixed, err, found, fixed)
	}
}

// TestWindowIsDivided checks that every row is found, however the rows are distributed, in
// transactions of one batch, even if rows already handled still lack their effect.
func TestWindowIsDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		start := time.Now()
		w.lack(950, start.Add(-20*time.Hour), 10*time.Millisecond)
		w.lack(300, start.Add(-10*time.Hour), 0) // all at the same time: more than a batch, and indivisible
		w.lack(50, start.Add(-3*time.Hour), time.Minute)
		w.lack(7, start.Add(-time.Minute), 0)  // in the grace period
		w.lack(7, start.Add(-25*time.Hour), 0) // too old
		p := w.reconciler(t, reconcile.Config{}, reconcile.Job[*memory.Tx]{Name: "rows", Find: w.find, Rate: -1})
		must(t, p, reconcile.Options{DryRun: true}, 1300, 0)
		must(t, p, reconcile.Options{Limit: 120}, 120, 120)
		run, err := p.RunNow(t.Context(), "rows", reconcile.Options{})
		if err != nil || run.Fixed != 1180 || run.Found < 1180 {
			t.Fatalf("%+v, %v", run, err)
		}
		must(t, p, reconcile.Options{}, 1300, 0) // all enqueued, but still without effect
		must(t, p, reconcile.Options{Since: 5 * time.Hour}, 50, 0)
		if stats := p.Stats()[0]; stats.Fixed != 1300 || stats.Runs != 4 || stats.Job != "rows" {
			t.Errorf("stats %+v", stats)
		}
		states, err := p.Jobs(t.Context())
		if err != nil || states[0].Total.Fixed != 1300 || states[0].Last.Fixed != 0 || states[0].Last.Found != 50 {
			t.Errorf("states %+v, %v", states, err)
		}
	})
}

// TestRate checks that a run respects Rate and keeps its claim meanwhile.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lack(1000, time.Now().Add(-time.Hour), time.Second)
		job := reconcile.Job[*memory.Tx]{Name: "rows", Find: w.find, Rate: 1, Timeout: time.Second}
		p := w.reconciler(t, reconcile.Config{Lease: 10 * time.Second}, job)
		other := w.reconciler(t, reconcile.Config{}, job)
		start, done := time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			must(t, p, reconcile.Options{}, 1000, 1000)
		}()
		for range 15 * 60 {
			time.Sleep(time.Second)
			if _, err := other.RunNow(t.Context(), "rows", reconcile.Options{}); !errors.Is(err, reconcile.ErrNotYet) {
				t.Fatalf("after %v: %v", time.Since(start), err)
			}
		}
		<-done
		if took := time.Since(start); took < 900*time.Second || took > 1000*time.Second {
			t.Errorf("1000 messages took %v", took)
		}
	})
}

// TestAgain checks that a message that was lost behind the outbox is sent again, but not at once
// and not forever.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lack(1, time.Now().Add(-time.Hour), 0)
		keys := make(map[string]bool)
		p := w.reconciler(t, reconcile.Config{}, reconcile.Job[*memory.Tx]{
			Name: "rows", Find: w.find, Again: reconcile.Again{Max: 3, After: time.Hour}})
		fixed := 0
		for range 22 * 60 / 5 { // until the row is out of the window
			run, err := p.RunNow(t.Context(), "rows", reconcile.Options{Show: func(m postrider.Message) { keys[m.DedupKey] = true }})
			if err != nil || run.Found != 1 {
				t.Fatalf("%+v, %v", run, err)
			}
			fixed += int(run.Fixed)
			time.Sleep(5 * time.Minute)
		}
		if fixed != 4 || len(keys) != 4 {
			t.Fatalf("sent %d times, as %v", fixed, keys)
		}
		for key := range keys {
			if base, n, again := strings.Cut(key, "#reconciler:"); !strings.HasPrefix(base, "row.added:") || again && !strings.Contains("123", n) {
				t.Errorf("key %q", key)
			}
		}
	})
}

// TestRunOnce checks that only one of many reconcilers runs a due job, and that one run makes up
// for all missed ones.
func TestRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var now, runs atomic.Int64
		schedule, err := reconcile.Cron("*/10 * * * *", nil)
		if err != nil {
			t.Fatal(err)
		}
		job := reconcile.Job[*memory.Tx]{Name: "rows", Schedule: schedule, Find: func(context.Context, *memory.Tx, time.Time, time.Time, int) ([]postrider.Message, error) {
			if now.Add(1) > 1 {
				t.Error("two at once")
			}
			runs.Add(1)
			time.Sleep(20 * time.Second)
			now.Add(-1)
			return nil, nil
		}}
		serve := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			var all sync.WaitGroup
			for range 5 {
				p := w.reconciler(t, reconcile.Config{}, job)
				all.Go(func() { _ = p.Run(ctx) })
			}
			all.Wait()
		}
		serve(time.Hour + time.Minute) // a synctest bubble begins at midnight
		if n := runs.Swap(0); n != 6 {
			t.Errorf("%d runs in an hour", n)
		}
		time.Sleep(5 * time.Hour)
		serve(time.Minute)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs for 30 that were missed", n)
		}
	})
}

// TestTakeover checks that another reconciler takes over the job of one that hangs when its lease
// expires, and that the first one cannot write after that.
func TestTakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lack(1, time.Now().Add(-time.Hour), 0)
		hung, wake := make(chan struct{}), make(chan struct{})
		first := w.reconciler(t, reconcile.Config{Lease: time.Minute}, reconcile.Job[*memory.Tx]{Name: "rows", Find: func(ctx context.Context, tx *memory.Tx, since, until time.Time, limit int) ([]postrider.Message, error) {
			close(hung)
			<-wake
			return w.find(ctx, tx, since, until, limit)
		}})
		ended := make(chan error)
		go func() {
			_, err := first.RunNow(context.WithoutCancel(t.Context()), "rows", reconcile.Options{})
			ended <- err
		}()
		<-hung
		start := time.Now()
		second := w.reconciler(t, reconcile.Config{}, reconcile.Job[*memory.Tx]{Name: "rows", Find: w.find})
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		_ = second.Run(ctx)
		if s := second.Stats()[0]; s.Runs != 1 || s.Fixed != 1 {
			t.Errorf("after %v: %+v", time.Since(start), s)
		}
		close(wake)
		if err := <-ended; !errors.Is(err, reconcile.ErrLost) {
			t.Errorf("the one that hung: %v", err)
		}
		states, _ := second.Jobs(t.Context())
		if states[0].Total != (reconcile.Counts{Found: 1, Fixed: 1}) {
			t.Errorf("%+v", states[0])
		}
	})
}

// TestStop checks that another process continues at once with the job of a process that was
// stopped.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.lack(300, time.Now().Add(-time.Hour), time.Second)
		job := reconcile.Job[*memory.Tx]{Name: "rows", Schedule: reconcile.Every(time.Hour), Find: w.find, Rate: 1}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			_ = w.reconciler(t, reconcile.Config{}, job).Run(ctx)
			cancel()
		}
		states, err := w.reconcilers.Jobs(t.Context())
		if err != nil || states[0].Total.Fixed != 300 {
			t.Errorf("%+v, %v", states, err)
		}
	})
}

// TestFailures checks that a failure is recorded, changes nothing, and does not end Run.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var broken atomic.Bool
		broken.Store(true)
		p := w.reconciler(t, reconcile.Config{}, reconcile.Job[*memory.Tx]{Name: "rows", Find: func(ctx context.Context, tx *memory.Tx, since, until time.Time, limit int) ([]postrider.Message, error) {
			if broken.Load() {
				return []postrider.Message{postrider.Event("row.added", postrider.Aggregate{Type: "row", ID: "1"}, 1)}, nil
			}
			return w.find(ctx, tx, since, until, limit)
		}})
		_, err := p.RunNow(t.Context(), "rows", reconcile.Options{})
		var invalid *postrider.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != "DedupKey" {
			t.Fatalf("without a dedup key: %v", err)
		}
		if _, err := p.RunNow(t.Context(), "row", reconcile.Options{}); !errors.Is(err, reconcile.ErrNoJob) {
			t.Errorf("no such job: %v", err)
		}
		if _, err := p.RunNow(t.Context(), "rows", reconcile.Options{Since: time.Second}); err == nil {
			t.Error("Since within Grace was accepted")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 12*time.Minute)
		defer cancel()
		go func() { time.Sleep(time.Minute); broken.Store(false) }()
		_ = p.Run(ctx)
		states, err := p.Jobs(t.Context())
		if s := states[0]; err != nil || s.Runs != 4 || s.Failed != 2 || s.Last.Error != "" || s.Total.Fixed != 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

var errDown = errors.New("no answer")

// fullLog is a log with one full page, which cannot be sent again.
type fullLog struct{ asked int }

func (l *fullLog) Sent(_ context.Context, _, _ time.Time, before int64, limit int) ([]reconcile.Sent, error) {
	if l.asked++; before != 0 {
		return nil, nil
	}
	sent := make([]reconcile.Sent, limit)
	for i := range sent {
		sent[i] = reconcile.Sent{Message: postrider.Message{ID: postrider.NewID()}, Place: int64(limit - i)}
	}
	return sent, nil
}

func (l *fullLog) Resend(context.Context, []int64, string) error { return errDown }

type noReceipts struct{}

func (noReceipts) Missing(_ context.Context, _ string, ids []postrider.ID) ([]postrider.ID, error) {
	return ids, nil
}

// TestErrorEndsARun: what a search or a repetition returns ends the run, and is its result.
func TestErrorEndsARun(t *testing.T) {
	w, log := newWorld(), new(fullLog)
	p := w.reconciler(t, reconcile.Config{},
		reconcile.Job[*memory.Tx]{Name: "find", Find: func(context.Context, *memory.Tx, time.Time, time.Time, int) ([]postrider.Message, error) {
			return nil, errDown
		}},
		reconcile.Job[*memory.Tx]{Name: "resend", Check: reconcile.Unreceived(log, noReceipts{}, "consumer", nil)})
	for _, job := range []string{"find", "resend"} {
		if _, err := p.RunNow(t.Context(), job, reconcile.Options{}); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", job, err)
		}
	}
	if log.asked != 1 {
		t.Errorf("asked for %d pages although the first could not be sent again", log.asked)
	}
}

// downStore is a store that is down for some calls.
type downStore struct {
	reconcile.Store[*memory.Tx]
	calls int
}

func (s *downStore) Announce(ctx context.Context, job, schedule string, first func(time.Time) time.Time) error {
	if s.calls++; s.calls <= 5 {
		return errDown
	}
	return s.Store.Announce(ctx, job, schedule, first)
}

// TestOutageIsLoggedOnce: an outage of the store has one line in the log, and the job then runs.
func TestOutageIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var log strings.Builder
		p, err := reconcile.New(&downStore{Store: w.reconcilers}, w.DB, w.DB, reconcile.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
			reconcile.Job[*memory.Tx]{Name: "rows", Find: w.find})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_ = p.Run(ctx)
		if lines := strings.Count(log.String(), errDown.Error()); lines != 1 || w.calls == 0 {
			t.Errorf("%d lines, %d searches:\n%s", lines, w.calls, log.String())
		}
	})
}

func TestMistakes(t *testing.T) {
	w := newWorld()
	good := reconcile.Job[*memory.Tx]{Name: "rows", Find: w.find}
	for name, change := range map[string]func(j *reconcile.Job[*memory.Tx]){
		"Name":    func(j *reconcile.Job[*memory.Tx]) { j.Name = "a b" },
		"neither": func(j *reconcile.Job[*memory.Tx]) { j.Find = nil },
		"both": func(j *reconcile.Job[*memory.Tx]) {
			j.Check = func(context.Context, *reconcile.Round) error { return nil }
		},
		"Window":   func(j *reconcile.Job[*memory.Tx]) { j.Window, j.Grace = time.Minute, time.Minute },
		"Grace":    func(j *reconcile.Job[*memory.Tx]) { j.Grace = -1 },
		"Batch":    func(j *reconcile.Job[*memory.Tx]) { j.Batch = -1 },
		"Limit":    func(j *reconcile.Job[*memory.Tx]) { j.Limit = -1 },
		"AgainMax": func(j *reconcile.Job[*memory.Tx]) { j.Again.Max = -1 },
		"Lease":    func(j *reconcile.Job[*memory.Tx]) { j.Timeout = time.Hour },
	} {
		j := good
		change(&j)
		if _, err := reconcile.New(w.reconcilers, w.DB, w.DB, reconcile.Config{}, j); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := reconcile.New(w.reconcilers, w.DB, w.DB, reconcile.Config{}, good, good); err == nil {
		t.Error("two jobs of one name: accepted")
	}
	if _, err := reconcile.New(w.reconcilers, w.DB, nil, reconcile.Config{}, good); err == nil {
		t.Error("no outbox: accepted")
	}
}

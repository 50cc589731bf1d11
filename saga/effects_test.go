package saga_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/saga/internal/kill"
	"github.com/postrider/postrider/store/memory"
)

// TestNoEffectIsForgotten runs random sagas whose steps charge a provider outside of the database.
// Processes die between any two statements, answers are lost, deadlines pass, and operators retry
// and give up sagas. In the end every charge has a completed saga or a refund, nothing is refunded
// that was never tried, and nothing is charged after its refund.
func TestNoEffectIsForgotten(t *testing.T) {
	runs := 400
	if need.IsLong() {
		runs = 10_000
	}
	var seen tally
	for seed := range runs {
		synctest.Test(t, func(t *testing.T) { charge(t, uint64(seed), &seen) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d runs: %+v", runs, seen)
	if seen.Completed == 0 || seen.Refunded == 0 || seen.Killed == 0 || seen.NeverBegun == 0 || seen.Deadline == 0 || seen.Operator == 0 {
		t.Errorf("not all was seen: %+v", seen)
	}
}

// tally counts events of the runs, so that a test in which they do not occur fails.
type tally struct{ Completed, Refunded, Killed, NeverBegun, Deadline, Operator, Unneeded int }

// provider is what the steps charge. It records its calls by step.
type provider struct {
	t        *testing.T
	mu       sync.Mutex
	random   *rand.Rand
	tried    map[string]int // calls of the action
	charged  map[string]int
	undone   map[string]int // calls of the compensation
	refunded map[string]bool
}

func (p *provider) roll(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

func (p *provider) rest(n int) time.Duration { return time.Duration(p.roll(n)) * time.Millisecond }

// answer returns what the caller gets, which is independent of whether there was an effect.
func (p *provider) answer() error {
	switch p.roll(10) {
	case 0:
		return errPlanned
	case 1:
		return postrider.Permanent(errPlanned)
	case 2:
		return postrider.Unavailable(errPlanned)
	}
	return nil
}

// step returns a step with an effect outside of the database.
func (p *provider) step(process *kill.Store[*memory.Tx], name string) saga.Steps[*memory.Tx, ledger] {
	act := func(ctx context.Context, _ *memory.Tx, _ *ledger) error {
		select {
		case <-time.After(p.rest(20)):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := process.Point(); err != nil {
			return err
		}
		p.mu.Lock()
		p.tried[name]++
		happens := p.random.IntN(4) > 0
		if happens {
			p.charged[name]++
			if p.refunded[name] {
				p.t.Errorf("%s is charged after its refund", name)
			}
		}
		p.mu.Unlock()
		time.Sleep(p.rest(20))
		if err := process.Point(); err != nil {
			return err
		}
		if err := p.answer(); err != nil || happens {
			return err
		}
		return errPlanned
	}
	undo := func(context.Context, *memory.Tx, *ledger) error {
		time.Sleep(p.rest(20))
		if err := process.Point(); err != nil {
			return err
		}
		p.mu.Lock()
		p.undone[name]++
		p.refunded[name] = p.charged[name] > 0
		p.mu.Unlock()
		if err := process.Point(); err != nil {
			return err
		}
		return p.answer()
	}
	quick := retry.Policy{Attempts: 4, First: time.Millisecond, Most: 20 * time.Millisecond}
	return saga.Step(name, act, undo).Timeout(30 * time.Millisecond).Retry(quick).RetryUndo(quick).UndoFailed()
}

func charge(t *testing.T, seed uint64, seen *tally) {
	t.Helper()
	p := &provider{
		t: t, random: rand.New(rand.NewPCG(seed, 7)), tried: make(map[string]int), charged: make(map[string]int),
		undone: make(map[string]int), refunded: make(map[string]bool),
	}
	sagas := memory.Open(memory.Config{}).Sagas()
	sideBySide, within := p.roll(2) == 0, []time.Duration{0, 50 * time.Millisecond, 300 * time.Millisecond}[p.roll(3)]
	declare := func(process *kill.Store[*memory.Tx]) *saga.Saga[*memory.Tx, ledger] {
		one, two, three := p.step(process, "one"), p.step(process, "two"), p.step(process, "three")
		steps := []saga.Steps[*memory.Tx, ledger]{one, two, three}
		if sideBySide {
			steps = []saga.Steps[*memory.Tx, ledger]{saga.Parallel(one, two), three}
		}
		g, err := saga.New(process, "g", steps...)
		if err != nil {
			t.Fatal(err)
		}
		return g.Within(within)
	}
	live := func(at int, life time.Duration) *kill.Store[*memory.Tx] {
		process := &kill.Store[*memory.Tx]{Store: sagas, At: at}
		r, err := saga.NewRunner(saga.Config{
			Concurrency: 1 + p.roll(3), Poll: 10 * time.Millisecond, Grace: time.Millisecond, SlowRetry: 50 * time.Millisecond,
			Logger: slog.New(slog.DiscardHandler),
		}, declare(process))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), life)
		defer stop()
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		return process
	}
	first := declare(&kill.Store[*memory.Tx]{Store: sagas})
	if err := sagas.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error { return first.Start(ctx, tx, "1", ledger{}) }); err != nil {
		t.Fatal(err)
	}
	for range p.roll(12) {
		if live(1+p.roll(25), p.rest(100)+time.Millisecond).Dead() {
			seen.Killed++
		}
		var act saga.Act
		switch p.roll(8) {
		case 0, 1:
			act = saga.ActRetry
		case 2:
			act = saga.ActCompensate
		default:
			continue
		}
		if done, err := sagas.Act(t.Context(), admin.By{Who: "model"}, act, "g", "1", ""); err != nil {
			t.Error(err)
		} else if done {
			seen.Operator++
		}
	}
	var i *saga.Instance
	for range 100 {
		live(0, time.Second)
		var err error
		if i, err = sagas.Show(t.Context(), "g", "1"); err != nil {
			t.Fatal(err)
		}
		if i.Status.Finished() {
			break
		}
	}
	p.check(i, seen)
}

func (p *provider) check(i *saga.Instance, seen *tally) {
	if strings.HasPrefix(i.Cause, saga.ErrDeadline.Error()) {
		seen.Deadline++
	}
	for n := range i.Steps {
		s := &i.Steps[n]
		begun := !s.Begun.IsZero()
		tried, charged, undone := p.tried[s.Name], p.charged[s.Name], p.undone[s.Name]
		wrong := ""
		switch {
		case tried > 0 && !begun:
			wrong = "it was tried, and is not known to have begun"
		case undone > 0 && !begun:
			wrong = "it never began, and is compensated"
		case i.Status == saga.Completed && (charged == 0 || undone > 0):
			wrong = "the saga is completed without the charge"
			seen.Completed++
		case i.Status == saga.Completed:
			seen.Completed++
		case i.Status != saga.Compensated:
			wrong = "the saga does not end"
		case charged > 0 && !p.refunded[s.Name]:
			wrong = "it was charged and not refunded"
		case begun && undone == 0:
			wrong = "it has begun, and is not compensated"
		case charged > 0:
			seen.Refunded++
		case !begun:
			seen.NeverBegun++
		default:
			seen.Unneeded++ // a compensation that finds nothing to undo
		}
		if wrong != "" {
			p.t.Errorf("%s: %s (saga is %s: %s; tried %d, charged %d, undone %d)\n%s", s.Name, wrong, i.Status, i.Cause, tried, charged, undone, fmt.Sprintf("%+v", i.Steps))
		}
	}
}

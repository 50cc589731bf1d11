package unitofwork_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
	"github.com/postrider/postrider/store/unitofwork"
)

type thing struct {
	unitofwork.Events
	name string
}

func (th *thing) happen(what string) {
	th.Record(postrider.Event(what, postrider.Aggregate{Type: "thing", ID: th.name}, nil))
}

// scene is a Work over one shard, so that the log shows the order of writing, with a transactor
// that can run its function again.
type scene struct {
	*unitofwork.Work[*memory.Tx]
	t     *testing.T
	store *memory.DB
}

func newScene(t *testing.T, again func(run int) error) *scene {
	store := memory.Open(memory.Config{Shards: 1})
	return &scene{unitofwork.New(repeating{store, again}, store), t, store}
}

// repeating rolls back a run if again returns an error, and runs the function again if that is
// errAgain, like a database that aborts transactions. If again is nil, it does neither.
type repeating struct {
	*memory.DB
	again func(run int) error
}

var errAgain = errors.New("again")

func (r repeating) Do(ctx context.Context, f func(context.Context, *memory.Tx) error) error {
	for run := 1; ; run++ {
		err := r.DB.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
			if err := f(ctx, tx); err != nil {
				return err
			}
			if r.again == nil {
				return nil
			}
			return r.again(run)
		})
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// log returns the types of all messages in the log, in order.
func (s *scene) log() string {
	s.t.Helper()
	feed, err := s.store.Open(s.t.Context(), postrider.NewID().String(), feeds.Member{Lease: time.Minute, Create: true})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := feed.Balance(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	batches, err := feed.Read(s.t.Context(), []feeds.Demand{{Shard: 0, Limit: 1 << 20}})
	if err != nil {
		s.t.Fatal(err)
	}
	var types []string
	for _, b := range batches {
		for _, m := range b.Messages {
			types = append(types, m.Type)
		}
	}
	return strings.Join(types, " ")
}

func (s *scene) wantLog(want string) {
	s.t.Helper()
	if got := s.log(); got != want {
		s.t.Errorf("the log holds %q, want %q", got, want)
	}
}

func wantLeft(t *testing.T, a *thing, want ...string) {
	t.Helper()
	var left []string
	for _, m := range a.Recorded() {
		left = append(left, m.Type)
	}
	if !slices.Equal(left, want) {
		t.Errorf("%s has %v left, want %v", a.name, left, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOrderIsThatOfRecording(t *testing.T) {
	s := newScene(t, nil)
	a, b := &thing{name: "a"}, &thing{name: "b"}
	a.happen("a1")
	b.happen("b1")
	must(t, s.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
		a.happen("a2")
		must(t, unitofwork.Track(ctx, b, a))
		must(t, unitofwork.Track(ctx, a)) // a second Track has no effect
		b.happen("b2")
		a.happen("a3")
		return s.store.Enqueue(ctx, tx, postrider.Event("manual", postrider.Aggregate{Type: "thing", ID: "c"}, nil))
	}))
	s.wantLog("manual a1 b1 a2 b2 a3")
	wantLeft(t, a)
	wantLeft(t, b)
	must(t, s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error { return unitofwork.Track(ctx, a, b) }))
	s.wantLog("manual a1 b1 a2 b2 a3")
}

func TestRepeatedRunsCountOnce(t *testing.T) {
	s := newScene(t, func(run int) error {
		if run < 3 {
			return errAgain
		}
		return nil
	})
	kept, dropped := &thing{name: "kept"}, &thing{name: "dropped"}
	kept.happen("before")
	dropped.happen("early")
	run := 0
	must(t, s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
		run++
		kept.happen(fmt.Sprint("run", run)) // before it is tracked
		if run < 3 {
			must(t, unitofwork.Track(ctx, dropped))
			dropped.happen("never")
		}
		must(t, unitofwork.Track(ctx, kept))
		kept.happen("end")
		return nil
	}))
	s.wantLog("before run3 end")
	wantLeft(t, kept)
	wantLeft(t, dropped, "early")
}

func TestFailureKeepsWhatWasBefore(t *testing.T) {
	refused := errors.New("refused")
	s := newScene(t, nil)
	a := &thing{name: "a"}
	a.happen("before")
	work := func(ctx context.Context, _ *memory.Tx) error {
		a.happen("inside")
		return unitofwork.Track(ctx, a)
	}
	err := s.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error { return errors.Join(work(ctx, tx), refused) })
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	s.wantLog("")
	wantLeft(t, a, "before")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = s.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
			must(t, work(ctx, tx))
			panic("at the worst moment")
		})
	}()
	wantLeft(t, a, "before")
	must(t, s.Do(t.Context(), work))
	s.wantLog("before inside")
	wantLeft(t, a)
}

func TestRefusedEventRollsBack(t *testing.T) {
	s := newScene(t, nil)
	a := &thing{name: "a"}
	a.Record(postrider.Message{}) // has no type
	err := s.Do(t.Context(), func(ctx context.Context, tx *memory.Tx) error {
		return errors.Join(unitofwork.Track(ctx, a), s.store.Enqueue(ctx, tx, postrider.Event("manual", postrider.Aggregate{Type: "thing", ID: "a"}, nil)))
	})
	if !errors.Is(err, postrider.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	s.wantLog("")
}

func TestTrackOutside(t *testing.T) {
	s := newScene(t, nil)
	if err := unitofwork.Track(t.Context(), &thing{}); !errors.Is(err, unitofwork.ErrNoUnit) {
		t.Errorf("without a unit: %v", err)
	}
	var leaked context.Context
	must(t, s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
		leaked = ctx //nolint:fatcontext // to be used after its unit
		return nil
	}))
	if err := unitofwork.Track(leaked, &thing{}); !errors.Is(err, unitofwork.ErrNoUnit) {
		t.Errorf("after the unit: %v", err)
	}
}

// Events that a hook records belong to the time after the unit.
func TestHookMayBeginTheNextUnit(t *testing.T) {
	s := newScene(t, nil)
	a := &thing{name: "a"}
	must(t, s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
		a.happen("first")
		postrider.AfterCommit(ctx, func() {
			a.happen("second")
			must(t, s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error { return unitofwork.Track(ctx, a) }))
			a.happen("third")
		})
		return unitofwork.Track(ctx, a)
	}))
	s.wantLog("first second")
	wantLeft(t, a, "third")
}

func TestInnerUnitIsItsOwn(t *testing.T) {
	s := newScene(t, nil)
	a, b := &thing{name: "a"}, &thing{name: "b"}
	err := s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
		a.happen("outer")
		must(t, unitofwork.Track(ctx, a))
		must(t, s.Do(ctx, func(ctx context.Context, _ *memory.Tx) error {
			b.happen("inner")
			return unitofwork.Track(ctx, b)
		}))
		return errors.New("outer fails")
	})
	if err == nil {
		t.Error("no error")
	}
	s.wantLog("inner")
}

// An inner unit that tracks an aggregate of the outer one writes only the events recorded within
// it, because the outer one may roll back.
func TestInnerUnitOfTheSameAggregate(t *testing.T) {
	for _, outer := range []error{nil, errors.New("outer fails")} {
		for _, inner := range []error{nil, errors.New("inner fails")} {
			s := newScene(t, nil)
			a := &thing{name: "a"}
			a.happen("before")
			err := s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
				must(t, unitofwork.Track(ctx, a))
				a.happen("outer")
				err := s.Do(ctx, func(ctx context.Context, _ *memory.Tx) error {
					a.happen("inner")
					must(t, unitofwork.Track(ctx, a))
					return inner
				})
				if !errors.Is(err, inner) {
					t.Errorf("the inner unit: %v, want %v", err, inner)
				}
				a.happen("after")
				return outer
			})
			if !errors.Is(err, outer) {
				t.Errorf("the outer unit: %v, want %v", err, outer)
			}
			var want []string
			if inner == nil {
				want = append(want, "inner")
			}
			if outer == nil {
				want = append(want, "before", "outer", "after")
			}
			s.wantLog(strings.Join(want, " "))
		}
	}
}

func TestTrackFromManyGoroutines(t *testing.T) {
	s := newScene(t, nil)
	must(t, s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				a := &thing{name: fmt.Sprint(i)}
				a.happen("x")
				if err := unitofwork.Track(ctx, a); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		return nil
	}))
	if n := len(strings.Fields(s.log())); n != 50 {
		t.Errorf("%d events, want 50", n)
	}
}

// Random use, compared with a model of the events that must be in the log: those recorded before a
// Do, or in the run that committed, on aggregates that the run tracked.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	outcome := func(int) error { return nil }
	s := newScene(t, func(run int) error { return outcome(run) })
	things := make([]*thing, 4)
	waiting := make([][]string, len(things)) // recorded outside of a unit and not written yet
	for i := range things {
		things[i] = &thing{name: fmt.Sprint(i)}
	}
	order := map[string]int{}
	next := 0
	record := func(i int) string {
		next++
		what := fmt.Sprintf("e%d", next)
		order[what] = next
		things[i].happen(what)
		return what
	}
	var want []string
	for range 300 {
		for range r.IntN(3) {
			i := r.IntN(len(things))
			waiting[i] = append(waiting[i], record(i))
		}
		runs, fails := 1+r.IntN(3), r.IntN(4) == 0
		outcome = func(run int) error {
			switch {
			case run < runs:
				return errAgain
			case fails:
				return errors.New("fails")
			}
			return nil
		}
		var tracked map[int]bool
		var inside map[int][]string
		err := s.Do(t.Context(), func(ctx context.Context, _ *memory.Tx) error {
			tracked, inside = map[int]bool{}, map[int][]string{}
			for range r.IntN(6) {
				i := r.IntN(len(things))
				if !tracked[i] && r.IntN(2) == 0 {
					must(t, unitofwork.Track(ctx, things[i]))
					tracked[i] = true
				}
				if r.IntN(2) == 0 {
					inside[i] = append(inside[i], record(i))
				}
			}
			// Events of an aggregate that no run tracks stay with it: that is another rule.
			for i := range things {
				if len(inside[i]) > 0 && !tracked[i] {
					must(t, unitofwork.Track(ctx, things[i]))
					tracked[i] = true
				}
			}
			return nil
		})
		if (err != nil) != fails {
			t.Fatalf("got %v", err)
		}
		if fails {
			continue
		}
		var written []string
		for i := range tracked {
			written = append(append(written, waiting[i]...), inside[i]...)
			waiting[i] = nil
		}
		slices.SortFunc(written, func(a, b string) int { return order[a] - order[b] })
		want = append(want, written...)
	}
	s.wantLog(strings.Join(want, " "))
}

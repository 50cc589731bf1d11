package sagatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
)

func (s *scene[Tx]) known(steps ...string) saga.Known { return saga.Known{s.name: steps} }

// unknownStep runs a saga of a newer program on an older one, and vice versa.
func unknownStep[Tx any](s *scene[Tx]) {
	newer := s.saga(step[Tx]("a"), step[Tx]("b"), step[Tx]("c"))
	older := s.saga(step[Tx]("a"), step[Tx]("c"))
	s.start(newer, "1")
	s.start(older, "2")
	stop := s.run(older)
	s.mustLog(s.await("2", saga.Completed), "a", "c")
	i := s.until("1", func(i *saga.Instance) bool { return i.Steps[1].State == saga.StepReady })
	s.mustLog(i, "a")
	strangers, err := s.maintainer().Maintain(s.t.Context(), 0, s.known("a", "c"))
	if err != nil || len(strangers) != 1 || strangers[0] != (saga.Stranger{Name: s.name, ID: "1", Step: "b"}) {
		s.t.Errorf("%+v, %v", strangers, err)
	}
	if _, ok, err := s.Store.Due(s.t.Context(), s.known("a", "c")); err != nil || ok {
		s.t.Errorf("a step that is not known is due: %v, %v", ok, err)
	}
	stop()
	s.run(newer)
	s.mustLog(s.await("1", saga.Completed), "a", "b", "c")
}

// unknownFieldsStay checks that a program keeps fields of the data that it does not know.
func unknownFieldsStay[Tx any](s *scene[Tx]) {
	type wide struct {
		Log   []string `json:"log"`
		Extra int64
	}
	g, err := saga.New(s.Store, s.name, saga.Step("a", func(context.Context, Tx, *wide) error { return nil }, nil))
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(func(ctx context.Context, tx Tx) error { return g.Start(ctx, tx, "1", wide{Extra: 1<<62 + 1}) })
	s.run(s.saga(step[Tx]("a")))
	i := s.await("1", saga.Completed)
	s.mustLog(i, "a")
	if want := fmt.Sprint(int64(1<<62 + 1)); !strings.Contains(string(i.Data), want) {
		s.t.Errorf("%s, want %s in it", i.Data, want)
	}
}

func maintain[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), hears[Tx]("ok"))
	s.start(g, "1", "2")
	s.signal(g, "2", "ok", 1)
	stop := s.run(g)
	s.await("1", saga.Waiting)
	s.await("2", saga.Completed)
	stop()
	for _, keep := range []time.Duration{0, time.Hour} {
		if _, err := s.maintainer().Maintain(s.t.Context(), keep, s.known("a")); err != nil {
			s.t.Error(err)
		}
	}
	s.show("2")
	time.Sleep(time.Millisecond)
	if _, err := s.maintainer().Maintain(s.t.Context(), time.Microsecond, s.known("a")); err != nil {
		s.t.Error(err)
	}
	s.show("1")
	if _, err := s.Admin.Show(s.t.Context(), s.name, "2"); !errors.Is(err, saga.ErrNotFound) {
		s.t.Errorf("got %v", err)
	}
}

func oddContent[Tx any](s *scene[Tx]) {
	const odd = "it's \"odd\" \u0000 %s $1 @schema@ \U0001F40E \u2028"
	g := s.saga(
		saga.Wait("w'\"$1", func(_ context.Context, _ Tx, data *trip, word string) error {
			data.Log = append(data.Log, word)
			return nil
		}, nil),
		saga.Step("e", func(context.Context, Tx, *trip) error { return errors.New(odd + "\xff" + strings.Repeat("é", 5000)) }, nil).Retry(quick))
	const id = `it's "1" @schema@ \ 日本`
	s.start(g, id)
	s.signal(g, id, "w'\"$1", odd)
	s.run(g)
	i := s.await(id, saga.Compensated)
	s.mustLog(i, odd)
	if !strings.HasPrefix(i.Steps[1].Error, `it's "odd" `) || len(i.Steps[1].Error) > 4100 {
		s.t.Errorf("%q", i.Steps[1].Error)
	}
}

// stepLock checks that only one transaction at a time can lock a step, and that the lock is free
// after commit and rollback.
func stepLock[Tx any](s *scene[Tx]) {
	s.start(s.saga(step[Tx]("a")), "1")
	ctx := s.t.Context()
	take := func(tx Tx) bool {
		i, name, err := s.Store.Take(ctx, tx, s.known("a"))
		if err != nil || i != nil && (name != "a" || i.ID != "1" || i.Status != saga.Running || len(i.Steps) != 1 || i.Now.IsZero()) {
			s.t.Errorf("%+v, %q, %v", i, name, err)
		}
		return i != nil
	}
	hold := func(tx Tx) bool {
		held, err := s.Store.Hold(ctx, tx, s.name, "1", "a")
		if err != nil {
			s.t.Error(err)
		}
		return held
	}
	free := func() (free bool) {
		s.do(func(_ context.Context, tx Tx) error {
			free = hold(tx)
			if took := take(tx) || hold(tx); took != free {
				s.t.Errorf("Take and Hold disagree: %v, %v", took, free)
			}
			return nil
		})
		return free
	}
	for _, lock := range []func(Tx) bool{take, hold} {
		for _, end := range []error{nil, errBroken} {
			err := s.Store.Do(ctx, func(_ context.Context, tx Tx) error {
				if !lock(tx) {
					s.t.Error("not free")
				}
				if free() {
					s.t.Error("taken twice")
				}
				return end
			})
			if !errors.Is(err, end) {
				s.t.Errorf("got %v", err)
			}
			if !free() {
				s.t.Error("still locked")
			}
		}
	}
	s.do(func(_ context.Context, tx Tx) error {
		if held, err := s.Store.Hold(ctx, tx, s.name, "2", "a"); err != nil || held {
			s.t.Errorf("%v, %v", held, err)
		}
		return nil
	})
}

// sagaLock checks that another transaction waits for a saga's lock, and then sees what was written.
func sagaLock[Tx any](s *scene[Tx]) {
	g := s.saga(hears[Tx]("ok"))
	s.start(g, "1")
	second := make(chan saga.Receipt, 1)
	s.do(func(ctx context.Context, tx Tx) error {
		if _, err := s.Store.Lock(ctx, tx, s.name, "1"); err != nil {
			return err
		}
		go func() {
			var receipt saga.Receipt
			err := s.Store.Do(context.Background(), func(ctx context.Context, tx Tx) (err error) {
				receipt, err = g.Signal(ctx, tx, "1", "ok", 2)
				return err
			})
			if err != nil {
				s.t.Error(err)
			}
			second <- receipt
		}()
		select {
		case <-second:
			s.t.Error("the other transaction did not wait")
		case <-time.After(50 * time.Millisecond):
		}
		_, err := g.Signal(ctx, tx, "1", "ok", 1)
		return err
	})
	if r := <-second; r != saga.Repeated {
		s.t.Errorf("receipt is %q", r)
	}
	if i := s.show("1"); len(i.Signals) != 1 || string(i.Signals[0].Payload) != "1" {
		s.t.Errorf("%+v", i.Signals)
	}
}

func saveOnlyOverWhatWasRead[Tx any](s *scene[Tx]) {
	s.start(s.saga(step[Tx]("a")), "1")
	err := s.Store.Do(s.t.Context(), func(ctx context.Context, tx Tx) error {
		i, err := s.Store.Lock(ctx, tx, s.name, "1")
		if err != nil {
			return err
		}
		old := i.Clone()
		if err := s.Store.Save(ctx, tx, i, saga.Change{Wake: []string{"a"}}); err != nil {
			return err
		}
		if i.Version != old.Version+1 {
			s.t.Errorf("version is %d after %d", i.Version, old.Version)
		}
		return s.Store.Save(ctx, tx, old, saga.Change{Wake: []string{"a"}})
	})
	if !errors.Is(err, saga.ErrConflict) {
		s.t.Errorf("got %v", err)
	}
}

func dueTellsTheNext[Tx any](s *scene[Tx]) {
	g := s.saga(step[Tx]("a"), breaks[Tx]("b").Retry(retry.Policy{First: time.Hour, Most: time.Hour}))
	due := func() (time.Duration, bool) {
		next, ok, err := s.Store.Due(s.t.Context(), s.known("a", "b"))
		if err != nil {
			s.t.Fatal(err)
		}
		return next, ok
	}
	if _, ok := due(); ok {
		s.t.Error("something is due")
	}
	s.start(g, "1")
	if next, ok := due(); !ok || next > 0 {
		s.t.Errorf("%v, %v", next, ok)
	}
	stop := s.run(g)
	s.until("1", func(i *saga.Instance) bool { return i.Steps[1].Attempts == 1 })
	stop()
	if next, ok := due(); !ok || next < 59*time.Minute || next > time.Hour {
		s.t.Errorf("%v, %v", next, ok)
	}
	if _, ok, err := s.Store.Due(s.t.Context(), s.known("a")); ok || err != nil {
		s.t.Error("a step that is not known is due")
	}
}

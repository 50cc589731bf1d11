// Package sagatest is the conformance test suite for implementations of [saga.Store].
package sagatest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
)

// Harness is a store under test with its admin port. Tests may share one.
type Harness[Tx any] struct {
	Store   saga.Store[Tx]
	Admin   saga.Admin
	Records admin.Records
}

// Run runs the suite. It calls open once for each test.
func Run[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	for name, test := range map[string]func(*scene[Tx]){
		"Completes":                completes[Tx],
		"StartIsPartOfTransaction": startIsPartOfTransaction[Tx],
		"SameIDTwice":              sameIDTwice[Tx],
		"RetriesWithFreshData":     retriesWithFreshData[Tx],
		"CompensatesInReverse":     compensatesInReverse[Tx],
		"PermanentAtOnce":          permanentAtOnce[Tx],
		"PanicIsAFailure":          panicIsAFailure[Tx],
		"StepTimeout":              stepTimeout[Tx],
		"Deadline":                 deadline[Tx],
		"UndoFailed":               undoFailed[Tx],
		"Outage":                   outage[Tx],
		"OutageForTooLong":         outageForTooLong[Tx],
		"RetryAfter":               retryAfter[Tx],
		"EffectsSurviveEveryKill":  effectsSurviveEveryKill[Tx],
		"NeverBegun":               neverBegunIsNotCompensated[Tx],
		"Signal":                   signal[Tx],
		"EarlySignal":              earlySignal[Tx],
		"SignalRolledBack":         signalRolledBack[Tx],
		"LateSignal":               lateSignal[Tx],
		"WaitTimeout":              waitTimeout[Tx],
		"BadSignal":                badSignal[Tx],
		"ParallelAtTheSameTime":    parallelAtTheSameTime[Tx],
		"ParallelFailure":          parallelFailure[Tx],
		"ParallelConflict":         parallelConflict[Tx],
		"Stuck":                    stuck[Tx],
		"SkipCompensation":         skipCompensation[Tx],
		"SkipWait":                 skipWait[Tx],
		"CompensateByOperator":     compensateByOperator[Tx],
		"CompensateWhileRunning":   compensateWhileRunning[Tx],
		"ListAndCount":             listAndCount[Tx],
		"UnknownStep":              unknownStep[Tx],
		"UnknownFieldsStay":        unknownFieldsStay[Tx],
		"ManyRunners":              manyRunners[Tx],
		"Maintain":                 maintain[Tx],
		"OddContent":               oddContent[Tx],
		"StepLock":                 stepLock[Tx],
		"SagaLock":                 sagaLock[Tx],
		"SaveOnlyOverWhatWasRead":  saveOnlyOverWhatWasRead[Tx],
		"OneStatementWhenIdle":     dueTellsTheNext[Tx],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&scene[Tx]{t, open(t), "trip " + name})
		})
	}
}

// trip is the data of the suite's sagas. Each step appends its name to Log, which is part of the
// step's transaction.
type trip struct {
	Log  []string `json:"log"`
	A, B int
}

type (
	action[Tx any] = func(ctx context.Context, tx Tx, data *trip) error
	steps[Tx any]  = saga.Steps[Tx, trip]
)

// quick is a retry policy that keeps the tests short.
var quick = retry.Policy{Attempts: 3, First: time.Millisecond, Most: 5 * time.Millisecond}

// step returns a step that logs name, and whose compensation logs -name.
func step[Tx any](name string) steps[Tx] {
	return saga.Step(name, logs[Tx](name), logs[Tx]("-"+name)).Retry(quick).RetryUndo(quick)
}

func logs[Tx any](word string) action[Tx] {
	return func(_ context.Context, _ Tx, data *trip) error {
		data.Log = append(data.Log, word)
		return nil
	}
}

var errBroken = errors.New("broken")

// breaks returns a step that always fails.
func breaks[Tx any](name string) steps[Tx] {
	return saga.Step(name, func(context.Context, Tx, *trip) error { return errBroken }, logs[Tx]("-"+name)).Retry(quick)
}

type scene[Tx any] struct {
	t *testing.T
	Harness[Tx]
	name string // name of the test's saga
}

func (s *scene[Tx]) maintainer() saga.Maintainer {
	s.t.Helper()
	m, ok := s.Store.(saga.Maintainer)
	if !ok {
		s.t.Skip("n/a: the store has no housekeeping")
	}
	return m
}

func (s *scene[Tx]) saga(steps ...steps[Tx]) *saga.Saga[Tx, trip] {
	s.t.Helper()
	g, err := saga.New(s.Store, s.name, steps...)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

func (s *scene[Tx]) do(f func(ctx context.Context, tx Tx) error) {
	s.t.Helper()
	if err := s.Store.Do(s.t.Context(), f); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene[Tx]) start(g *saga.Saga[Tx, trip], ids ...string) {
	s.t.Helper()
	s.do(func(ctx context.Context, tx Tx) error {
		for _, id := range ids {
			if err := g.Start(ctx, tx, id, trip{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *scene[Tx]) signal(g *saga.Saga[Tx, trip], id, step string, payload any) (receipt saga.Receipt) {
	s.t.Helper()
	s.do(func(ctx context.Context, tx Tx) (err error) {
		receipt, err = g.Signal(ctx, tx, id, step, payload)
		return err
	})
	return receipt
}

var config = saga.Config{
	Concurrency: 3, Poll: 20 * time.Millisecond, SlowRetry: time.Hour, Logger: slog.New(slog.DiscardHandler),
}

// run runs the sagas until the test ends or the returned function is called.
func (s *scene[Tx]) run(sagas ...saga.Definition[Tx]) (stop func()) {
	s.t.Helper()
	return s.runWith(config, sagas...)
}

func (s *scene[Tx]) runWith(config saga.Config, sagas ...saga.Definition[Tx]) (stop func()) {
	s.t.Helper()
	r, err := saga.NewRunner(config, sagas...)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			s.t.Error(err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	s.t.Cleanup(stop)
	return stop
}

func (s *scene[Tx]) show(id string) *saga.Instance {
	s.t.Helper()
	i, err := s.Admin.Show(s.t.Context(), s.name, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

const timeout = 20 * time.Second

// until waits until a saga satisfies a condition.
func (s *scene[Tx]) until(id string, wanted func(i *saga.Instance) bool) *saga.Instance {
	s.t.Helper()
	for end := time.Now().Add(timeout); ; time.Sleep(2 * time.Millisecond) {
		i := s.show(id)
		if wanted(i) {
			return i
		}
		if time.Now().After(end) {
			s.t.Fatalf("still not as wanted: %+v", i)
		}
	}
}

func (s *scene[Tx]) await(id string, status saga.Status) *saga.Instance {
	s.t.Helper()
	return s.until(id, func(i *saga.Instance) bool { return i.Status == status })
}

// mustLog checks the log of the steps.
func (s *scene[Tx]) mustLog(i *saga.Instance, want ...string) {
	s.t.Helper()
	if got := read(s.t, i).Log; !slices.Equal(got, want) {
		s.t.Errorf("log is %q, want %q", got, want)
	}
}

// mustBe checks the states of the steps, in order.
func (s *scene[Tx]) mustBe(i *saga.Instance, want ...saga.State) {
	s.t.Helper()
	var got []saga.State
	for _, st := range i.Steps {
		got = append(got, st.State)
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("steps are %q, want %q", got, want)
	}
}

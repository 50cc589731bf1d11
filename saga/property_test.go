package saga_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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
	"github.com/postrider/postrider/store/memory"
)

// TestProperties runs random sagas on a store that fails at random, with signals that are late,
// early, repeated or missing, runners that stop and start, and an operator who gives some up. It
// compares the result of each saga with its plan.
func TestProperties(t *testing.T) {
	seeds := 80
	if need.IsLong() {
		seeds = 20_000
	}
	seen := make(map[saga.Status]int)
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { simulate(t, uint64(seed), seen) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d seeds: %v", seeds, seen)
	if seen[saga.Completed] == 0 || seen[saga.Compensated] == 0 {
		t.Error("not all ends were seen")
	}
}

type ledger struct {
	Log  []string
	Paid int
	Told int
}

// planned is the planned behavior of a step. This is the model; it does not know how sagas are run.
type planned struct {
	name   string
	price  int
	takes  time.Duration
	fails  int // attempts that fail before one succeeds
	broken bool
	waits  bool
	stage  int
}

type simulation struct {
	t      *testing.T
	random *rand.Rand
	mu     sync.Mutex
	plans  [][]planned
	tries  map[string]int
}

func (s *simulation) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

func simulate(t *testing.T, seed uint64, seen map[saga.Status]int) {
	s := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), tries: make(map[string]int)}
	sagas := memory.Open(memory.Config{}).Sagas()
	shaky := &shakyStore{sagas, s}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var all []*saga.Saga[*memory.Tx, ledger]
	var definitions []saga.Definition[*memory.Tx]
	for n := range 3 {
		g := s.declare(shaky, n)
		all, definitions = append(all, g), append(definitions, g)
	}
	for range 2 {
		group.Go(func() { s.comeAndGo(ctx, definitions) })
	}
	var clients sync.WaitGroup
	for n, g := range all {
		for m := range 3 {
			id := fmt.Sprint(m)
			clients.Go(func() { s.client(ctx, sagas, g, n, id) })
		}
	}
	clients.Wait()
	for n := range all {
		for m := range 3 {
			i := s.await(sagas, fmt.Sprint("g", n), fmt.Sprint(m))
			seen[i.Status]++
			s.verify(i, s.plans[n])
		}
	}
	stop()
	group.Wait()
}

// declare declares a random saga.
func (s *simulation) declare(store saga.Store[*memory.Tx], n int) *saga.Saga[*memory.Tx, ledger] {
	s.t.Helper()
	var plan []planned
	var steps []saga.Steps[*memory.Tx, ledger]
	for stage := range 1 + s.roll(4) {
		var side []saga.Steps[*memory.Tx, ledger]
		for range []int{1, 1, 1, 2, 3}[s.roll(5)] {
			p := planned{
				name: fmt.Sprintf("s%d", len(plan)), price: 1 + s.roll(100), takes: time.Duration(s.roll(30)) * time.Millisecond, fails: s.roll(3),
				broken: s.roll(12) == 0, waits: s.roll(4) == 0, stage: stage,
			}
			plan = append(plan, p)
			side = append(side, s.step(n, p))
		}
		if len(side) > 1 {
			side = []saga.Steps[*memory.Tx, ledger]{saga.Parallel(side...)}
		}
		steps = append(steps, side[0])
	}
	s.plans = append(s.plans, plan)
	g, err := saga.New(store, fmt.Sprint("g", n), steps...)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

var errPlanned = errors.New("as planned")

func (s *simulation) step(n int, p planned) saga.Steps[*memory.Tx, ledger] {
	do := func(ctx context.Context, _ *memory.Tx, data *ledger) error {
		select {
		case <-time.After(p.takes):
		case <-ctx.Done():
			return ctx.Err()
		}
		data.Log = append(data.Log, p.name)
		data.Paid += p.price
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tries[saga.Key(ctx)]++
		switch {
		case p.broken:
			return postrider.Permanent(errPlanned)
		case s.tries[saga.Key(ctx)] <= p.fails:
			return errPlanned
		}
		return nil
	}
	undo := func(ctx context.Context, _ *memory.Tx, data *ledger) error {
		if s.roll(4) == 0 {
			return errPlanned
		}
		data.Log = append(data.Log, "-"+p.name)
		data.Paid -= p.price
		return nil
	}
	forever := retry.Policy{Attempts: 1000, First: time.Millisecond, Most: 10 * time.Millisecond}
	// Allow more attempts than planned failures, because the store fails at random too.
	often := retry.Policy{Attempts: 1000, First: time.Millisecond, Most: 40 * time.Millisecond}
	if !p.waits {
		return saga.Step(p.name, do, undo).Retry(often).RetryUndo(forever)
	}
	return saga.Wait(p.name, func(ctx context.Context, tx *memory.Tx, data *ledger, told int) error {
		data.Told += told
		return do(ctx, tx, data)
	}, undo).Within(200 * time.Millisecond).Retry(often).RetryUndo(forever)
}

// comeAndGo runs a process that is restarted from time to time.
func (s *simulation) comeAndGo(ctx context.Context, sagas []saga.Definition[*memory.Tx]) {
	for ctx.Err() == nil {
		runner, err := saga.NewRunner(saga.Config{
			Concurrency: 1 + s.roll(3), Poll: 20 * time.Millisecond, Grace: time.Millisecond, SlowRetry: time.Second,
			Logger: slog.New(slog.DiscardHandler),
		}, sagas...)
		if err != nil {
			s.t.Error(err)
			return
		}
		life, end := context.WithTimeout(ctx, time.Duration(50+s.roll(300))*time.Millisecond)
		if err := runner.Run(life); err != nil {
			s.t.Error(err)
		}
		end()
	}
}

// client starts a saga and sends it signals: too early, too late, twice or not at all.
func (s *simulation) client(ctx context.Context, sagas *memory.Sagas, g *saga.Saga[*memory.Tx, ledger], n int, id string) {
	err := sagas.Do(ctx, func(ctx context.Context, tx *memory.Tx) error { return g.Start(ctx, tx, id, ledger{}) })
	if err != nil {
		s.t.Error(err)
	}
	var group sync.WaitGroup
	for _, p := range s.plans[n] {
		if !p.waits || s.roll(8) == 0 {
			continue
		}
		for k := range 1 + s.roll(3) {
			group.Go(func() {
				time.Sleep(time.Duration(s.roll(400)) * time.Millisecond)
				err := errShaky
				for errors.Is(err, errShaky) {
					err = sagas.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
						_, err := g.Signal(ctx, tx, id, p.name, 1+k)
						return err
					})
				}
				if err != nil {
					s.t.Error(err)
				}
			})
		}
	}
	if s.roll(10) == 0 {
		time.Sleep(time.Duration(s.roll(200)) * time.Millisecond)
		if _, err := sagas.Act(ctx, admin.By{Who: "model"}, saga.ActCompensate, fmt.Sprint("g", n), id, ""); err != nil {
			s.t.Error(err)
		}
	}
	group.Wait()
}

func (s *simulation) await(sagas *memory.Sagas, name, id string) *saga.Instance {
	for end := time.Now().Add(time.Hour); ; time.Sleep(50 * time.Millisecond) {
		i, err := sagas.Show(s.t.Context(), name, id)
		if err != nil {
			s.t.Fatal(err)
		}
		if i.Status.Finished() {
			return i
		}
		if time.Now().After(end) {
			s.t.Fatalf("not finished after an hour: %+v", i)
		}
	}
}

// verify compares the result of a saga with its plan.
func (s *simulation) verify(i *saga.Instance, plan []planned) {
	s.t.Helper()
	var data ledger
	if err := json.Unmarshal(i.Data, &data); err != nil {
		s.t.Fatal(err)
	}
	price, told := 0, 0
	doomed := i.Cause == saga.CauseOperator
	for _, p := range plan {
		price += p.price
		doomed = doomed || p.broken
		if p.waits {
			signal := slices.IndexFunc(i.Signals, func(g saga.Signal) bool { return g.Name == p.name && !g.Late })
			if signal < 0 {
				doomed = true // no signal arrived in time
				continue
			}
			var payload int
			_ = json.Unmarshal(i.Signals[signal].Payload, &payload)
			told += payload
		}
	}
	wrong := func(format string, args ...any) {
		s.t.Helper()
		s.t.Errorf("%s/%s (%s, %s): %s\n%+v\n%+v", i.Name, i.ID, i.Status, i.Cause, fmt.Sprintf(format, args...), data, i.Steps)
	}
	if doomed != (i.Status == saga.Compensated) {
		wrong("is it doomed? %v", doomed)
	}
	stage := func(name string) int {
		return plan[slices.IndexFunc(plan, func(p planned) bool { return p.name == name })].stage
	}
	var done []string
	for n, word := range data.Log {
		name, undone := strings.CutPrefix(word, "-")
		switch {
		case !undone && slices.Contains(data.Log[:n], word), !undone && len(done) > 0 && stage(done[len(done)-1]) > stage(word):
			wrong("%s is done twice, or before its turn", word)
		case !undone:
			done = append(done, word)
		case len(done) == 0 || done[len(done)-1] != name:
			wrong("%s is undone out of turn", name)
			return
		default:
			done = done[:len(done)-1]
		}
	}
	if i.Status == saga.Completed && (len(done) != len(plan) || data.Paid != price || data.Told != told) {
		wrong("paid %d, told %d, want %d and %d", data.Paid, data.Told, price, told)
	}
	if i.Status == saga.Compensated && (len(done) != 0 || data.Paid != 0) {
		wrong("something is left")
	}
}

// shakyStore loses transactions: before they begin, before the commit, and after it, when the
// outcome is unknown.
type shakyStore struct {
	*memory.Sagas
	s *simulation
}

var errShaky = errors.New("the database is away")

func (f *shakyStore) Do(ctx context.Context, do func(ctx context.Context, tx *memory.Tx) error) error {
	how := f.s.roll(20)
	if how == 0 {
		return errShaky
	}
	err := f.Sagas.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		if err := do(ctx, tx); err != nil || how != 1 {
			return err
		}
		return errShaky
	})
	if err == nil && how == 2 {
		return errShaky
	}
	return err
}

func (f *shakyStore) Lock(ctx context.Context, tx *memory.Tx, name, id string) (*saga.Instance, error) {
	if f.s.roll(20) == 0 && saga.Key(ctx) == "" {
		return nil, errShaky
	}
	return f.Sagas.Lock(ctx, tx, name, id)
}

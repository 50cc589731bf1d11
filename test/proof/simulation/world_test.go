package simulation_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	brokermemory "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// world is one simulated history.
type world struct {
	plan   plan
	store  *memory.DB
	model  *model
	stored *brokermemory.Broker // what the broker has, if it can report that
	log    *slog.Logger
	begun  time.Time

	stopping context.Context
	work     sync.WaitGroup // relays, producers, events, and late effects
	relays   []*seat

	writing sync.Mutex // held over a commit and its record
	written int

	mu         sync.Mutex
	feeds      []*feed
	crashes    int
	whole      bool // no more faults
	database   down
	broker     down
	names      [3]down
	lateArrive sync.WaitGroup
}

// down is an outage.
type down struct {
	until time.Time
	hangs bool
}

func (d down) now() (hangs, is bool) { return d.hangs, time.Now().Before(d.until) }

const feedName = "feed"

// result is the result of a simulated history.
type result struct {
	wrong                       string
	trace                       []string
	simulated                   time.Duration
	committed, received, faults int
}

// simulate runs a plan. It must be called in a bubble of virtual time.
func simulate(p plan, logs bool) result {
	stopping, stopAll := context.WithCancel(context.Background())
	defer stopAll()
	w := &world{
		plan: p, begun: time.Now(), stopping: stopping,
		store: memory.Open(memory.Config{Shards: p.Shards}), stored: brokermemory.New(),
		model: newModel(isStrict(p.Config), p.Recalls),
	}
	level := slog.LevelWarn
	if logs {
		level = slog.LevelDebug
	}
	w.log = slog.New(slog.NewTextHandler(w.model, &slog.HandlerOptions{Level: level}))
	for i := range p.Relays {
		w.relays = append(w.relays, w.seat("relay"+strconv.Itoa(i)))
	}
	var plans sync.WaitGroup
	plans.Go(w.produce)
	plans.Go(w.happen)
	plans.Wait()

	w.heal()
	w.await("after the faults", w.timeout())
	w.quiet()
	for _, s := range w.relays {
		s.leave()
	}
	stopAll()
	w.work.Wait()
	w.checkTable()
	w.model.explainRepeats(w.longestCall())

	r := result{wrong: w.model.problems(), trace: w.model.trace, simulated: time.Since(w.begun)}
	r.committed, r.received, r.faults = w.model.counts()
	return r
}

// produce commits the transactions of the plan.
func (w *world) produce() {
	for _, tx := range w.plan.Transactions {
		time.Sleep(tx.After)
		w.commit(tx)
	}
}

func (w *world) commit(t transaction) {
	w.writing.Lock()
	defer w.writing.Unlock()
	tx := w.store.Begin()
	for _, l := range t.DeadLetters {
		w.written++
		key := ""
		if l.Key > 0 {
			key = "k" + strconv.Itoa(l.Key)
		}
		payload := "m" + strconv.Itoa(w.written)
		m := postrider.Event("happened", postrider.Aggregate{}, []byte(payload))
		m.Topic = "n" + strconv.Itoa(w.written%w.plan.Names)
		m.Key, m.Priority, m.Headers = key, l.Priority, map[string]string{"payload": payload}
		var due time.Time
		if l.Delay > 0 {
			due = time.Now().Add(l.Delay)
			m.DeliverAfter = due
		}
		if err := w.store.Enqueue(context.Background(), tx, m); err != nil {
			panic(err)
		}
		w.model.commit(payload, key, l, due, t.Rollback)
	}
	end := tx.Commit
	if t.Rollback {
		end = tx.Rollback
	}
	if err := end(); err != nil {
		panic(err)
	}
	for _, s := range w.relays {
		s.wake()
	}
}

// happen runs the events of the plan.
func (w *world) happen() {
	var over sync.WaitGroup
	for n, e := range w.plan.Events {
		time.Sleep(e.After)
		s := w.relays[e.Which]
		switch e.What {
		case kill:
			s.kill(e.For)
		case pause:
			s.pause(e.For)
		case stop:
			over.Go(func() { s.restart(e.For) })
		case join:
			over.Go(func() {
				extra := w.seat("guest" + strconv.Itoa(n))
				time.Sleep(e.For)
				extra.leave()
			})
		case databaseDown:
			w.setDown(&w.database, e)
		case brokerDown:
			w.setDown(&w.broker, e)
		case nameDown:
			w.setDown(&w.names[e.Which%w.plan.Names], e)
		case crash:
			w.crash()
		case rewind:
			w.rewind()
		case retry:
			w.operate(false)
		}
	}
	over.Wait()
}

func (w *world) setDown(d *down, e event) {
	w.model.fault("%s for %v, hangs: %v", e.What, e.For, e.Hangs)
	w.mu.Lock()
	defer w.mu.Unlock()
	*d = down{time.Now().Add(e.For), e.Hangs}
}

func (w *world) databaseIsDown() (hangs, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.database.now()
}

func (w *world) brokerIsDown() (hangs, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broker.now()
}

func (w *world) nameIsDown(name string) (hangs, is bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, _ := strconv.Atoi(name[1:])
	return w.names[n].now()
}

// crash makes the database forget the owners of shards. Everything handed out is void.
func (w *world) crash() {
	w.model.fault("the database crashes")
	w.model.void()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crashes++
	for _, f := range w.feeds {
		f.giveUp(shardNumbers(w.plan.Shards))
	}
}

func shardNumbers(n int) []int {
	shards := make([]int, n)
	for i := range shards {
		shards[i] = i
	}
	return shards
}

func (w *world) generation() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crashes
}

func (w *world) join(f *feed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feeds = append(w.feeds, f)
}

// rewind has recently committed messages sent again.
func (w *world) rewind() {
	w.model.rewind()
	w.model.void()
	_, _ = w.store.Rewind(context.Background(), admin.By{Who: "operator"}, feedName, admin.Point{Time: time.Now().Add(-w.plan.Config.Lease)})
}

// operate handles dead letters as an operator does: at the end it discards those that will never
// arrive.
func (w *world) operate(discards bool) {
	by, ctx := admin.By{Who: "operator"}, context.Background()
	dead, err := w.store.List(ctx, admin.Filter{Feed: feedName, Statuses: []feeds.Status{feeds.StatusDead}}, nil, 1000)
	if err != nil {
		panic(err)
	}
	for _, d := range dead {
		act := admin.Retry
		if w.model.kindOf(&d.Message) != good {
			if !discards {
				continue
			}
			act = admin.Discard
			w.model.abandon(string(d.Payload))
		}
		if _, err := w.store.Act(ctx, by, act, admin.Filter{Feed: feedName, ID: d.ID}, 1); err != nil {
			panic(err)
		}
	}
}

// later runs do after a delay, concurrently.
func (w *world) later(after time.Duration, do func()) {
	w.lateArrive.Go(func() {
		time.Sleep(after)
		w.model.fault("something arrives late")
		do()
	})
}

func (w *world) healed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.whole
}

// heal ends all faults.
func (w *world) heal() {
	w.mu.Lock()
	w.whole, w.database, w.broker, w.names = true, down{}, down{}, [3]down{}
	w.mu.Unlock()
	w.lateArrive.Wait()
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	w.model.note("nothing goes wrong any more")
}

// timeout bounds the time until everything has arrived once the faults are over.
func (w *world) timeout() time.Duration {
	c := w.plan.Config
	longest := time.Minute + 10*c.Lease + 3*c.Retry.Most*time.Duration(c.Retry.Attempts) + 10*c.Outage.Most
	for _, tx := range w.plan.Transactions {
		for _, l := range tx.DeadLetters {
			switch l.Kind {
			case crasher:
				longest += 10 * (2*c.Lease + 5*time.Second)
			case swallows:
				longest += 40 * 3 * c.Outage.Most
			default: // takes no longer
			}
		}
	}
	return longest
}

// await lets time pass until everything has arrived that will, and fails if that takes too long.
// Meanwhile other messages arrive: without them a message that always fails looks like an outage.
func (w *world) await(when string, limit time.Duration) {
	step := max(w.plan.Config.Lease/20, 20*time.Millisecond)
	end := time.Now().Add(limit)
	for n := 1; ; n++ {
		time.Sleep(step)
		if n%100 == 0 {
			w.commit(transaction{DeadLetters: slices.Repeat([]draft{{Kind: good}}, 3*w.plan.Shards*w.plan.Names)})
		}
		w.operate(true)
		missing := w.model.missing()
		if len(missing) == 0 {
			return
		}
		if time.Now().After(end) {
			w.model.mu.Lock()
			defer w.model.mu.Unlock()
			w.model.complain("%s, %d messages have not arrived within %v: %s", when, len(missing), limit, strings.Join(missing, " "))
			return
		}
	}
}

// longestCall is the time after which a relay has given up every call without a response.
func (w *world) longestCall() time.Duration { return 35*time.Second + w.plan.Config.Lease }

// quiet is a period without faults: messages arrive, and relays are stopped and started cleanly.
func (w *world) quiet() {
	if w.model.problems() != "" {
		return
	}
	time.Sleep(w.longestCall() + 2*w.plan.Config.Lease) // until calls without a response have timed out, and suspended processes have resumed
	for i := range 6 {
		var tx transaction
		for key := range 4 {
			tx.DeadLetters = append(tx.DeadLetters, draft{Key: min(key, w.plan.Keys), Kind: good})
		}
		w.commit(tx)
		if s := w.relays[i%len(w.relays)]; i%2 == 0 {
			s.restart(0)
		}
	}
	w.await("in quiet times", w.timeout())
}

// checkTable reports leftover rows. A message that an operator has discarded may be there again: a
// relay that took over its shard before it was settled has read it once more.
func (w *world) checkTable() {
	left, err := w.store.List(context.Background(), admin.Filter{Feed: feedName}, nil, 1000)
	if err != nil {
		panic(err)
	}
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	for _, d := range left {
		if f := w.model.committed[string(d.Payload)]; f.times == 0 && !f.abandoned {
			w.model.complain("%s is left behind, as %s", d.Payload, d.Status)
		}
	}
}

// seat is a place for a relay, filled by one process after another.
type seat struct {
	w    *world
	name string
	gone context.CancelFunc // no other process follows

	mu      sync.Mutex
	process *process
	relay   *relay.Relay
	end     context.CancelFunc // of the current process
	ended   chan struct{}
	rest    time.Duration // before the next process
	lives   int
}

// seat starts a relay, and restarts it whenever it ends, until leave.
func (w *world) seat(name string) *seat {
	ctx, cancel := context.WithCancel(w.stopping)
	s := &seat{w: w, name: name, gone: cancel}
	w.work.Go(func() {
		for ctx.Err() == nil {
			s.live(ctx)
			s.mu.Lock()
			rest := s.rest
			s.mu.Unlock()
			select {
			case <-time.After(max(rest, time.Millisecond)):
			case <-ctx.Done():
			}
		}
	})
	return s
}

// live runs one process to its end.
func (s *seat) live(ctx context.Context) {
	w := s.w
	run, end := context.WithCancel(ctx)
	defer end()
	s.mu.Lock()
	s.lives++
	p := w.newProcess(s.name + "." + strconv.Itoa(s.lives))
	cfg := w.plan.Config
	cfg.Feed, cfg.Name, cfg.Logger = feedName, p.name, w.log.With("process", p.name)
	r, err := relay.New(database{p}, p.publisher(), cfg)
	if err != nil {
		panic(fmt.Sprint(err, "\n", w.plan))
	}
	s.process, s.relay, s.end, s.ended, s.rest = p, r, end, make(chan struct{}), 0
	ended := s.ended
	s.mu.Unlock()
	stopped := make(chan error, 1)
	w.work.Go(func() { stopped <- r.Run(run) })
	select {
	case err = <-stopped:
	case <-p.dead: // its goroutines continue for a while, without any effect
		end()
	}
	healed := w.healed() // before others learn of the end: it may be what the healing waits for
	close(ended)
	if err != nil && !p.isDead() && healed {
		w.model.mu.Lock()
		w.model.complain("%s was stopped, and nothing went wrong: %v", p.name, err)
		w.model.mu.Unlock()
	}
}

func (s *seat) kill(rest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.rest = rest
		s.process.kill()
	}
}

func (s *seat) pause(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		s.process.pause(d)
	}
}

func (s *seat) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.relay != nil {
		s.relay.Wake()
	}
}

// restart stops the relay cleanly, and starts another one after a rest.
func (s *seat) restart(rest time.Duration) {
	s.mu.Lock()
	ended := s.ended
	if s.process != nil {
		s.rest = rest
		s.end()
	}
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// leave stops the relay cleanly and does not restart it.
func (s *seat) leave() {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	s.gone()
	if ended != nil {
		<-ended
	}
}

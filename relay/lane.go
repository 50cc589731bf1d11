package relay

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay/internal/shard"
	"github.com/postrider/postrider/store/feeds"
)

// lane carries the messages of one shard for as long as the relay holds it. One goroutine owns the shard's state machine, tells
// it what has happened and starts what it wants done; calls of the publisher and of the store run beside it.
type lane struct {
	s       *session
	shard   int
	slice   *feeds.Slice // what the lane is about, if that is a part of a shard
	machine *shard.Machine
	after   []*lane         // those that had its keys before, and may still publish
	done    chan struct{}   // closed when the lane has ended
	ctx     context.Context // for Publish
	cancel  context.CancelFunc
	wake    chan struct{}    // holds one token: there is mail
	sends   chan *shard.Call // what the sender publishes
	answers chan func(now time.Time)
	calls   sync.WaitGroup // of the publisher and the store
	trouble [2]outage      // of publishing and of deferring

	split   string // the tenant to be read apart when the lane has ended; set before that
	partner *lane  // the one to be read together with when both have ended; guarded by the lock of the epoch

	mu   sync.Mutex
	mail mail
	face face
}

// mail is what others have for the lane.
type mail struct {
	batches []sized
	due     []feeds.Deferred
	exclude *[]postrider.ID // messages that are not to be sent; nil if that is known
	renewed time.Time       // when the last call that renewed the lease was sent; zero if there was none
	drain   bool            // finish what has been begun, then end
	kill    bool            // end; nothing that the lane still does matters
}

// sized is a batch and what it takes in memory.
type sized struct {
	*feeds.Batch
	bytes int
}

// face is what others may know of the lane.
type face struct {
	shard.Standing
	mark     shard.Mark
	settled  uint64           // the version of the mark that the store knows
	count    shard.Counts     // what the relay's counters know
	wantsDue bool             // deferred messages can be sent,
	held     []feeds.HeldName // but for those of these names
	waits    bool             // for room: the reader is to be told when there is some
	behind   time.Time        // when there was last known to be more than had been read
}

// newLane makes a lane without a lease. Its shard may have been taken long ago, by a Balance whose answer was lost: the first
// Settle tells that it is still the relay's.
func newLane(s *session, number int, slice *feeds.Slice, start shard.Start) *lane {
	log := s.log.With("shard", number)
	l := &lane{
		s:       s,
		shard:   number,
		slice:   slice,
		machine: shard.New(s.machine(number, slice != nil, s.splitter != nil), start),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		sends:   make(chan *shard.Call, 1),     // as many as there can be
		answers: make(chan func(time.Time), 3), // as many as there can be: who answers never waits
		trouble: [2]outage{{log: log, what: "publishing"}, {log: log, what: "deferring messages"}},
	}
	l.face.behind = time.Now()
	l.face.Suspicious = start.Suspects > 0
	l.ctx, l.cancel = context.WithCancel(s.hard)
	return l
}

// post leaves mail.
func (l *lane) post(write func(m *mail)) {
	l.mu.Lock()
	write(&l.mail)
	l.mu.Unlock()
	signal(l.wake)
}

// drain makes the lane end as soon as that repeats nothing, or when DrainTimeout has passed: a store that fails for ever must
// not keep its shard from another relay.
func (l *lane) drain() { l.post(func(m *mail) { m.drain = true }) }

// kill makes the lane end as soon as it can, and a Publish under way too if cut is set.
func (l *lane) kill(cut bool) {
	l.post(func(m *mail) { m.kill = true })
	if cut {
		l.cancel()
	}
}

func (l *lane) ending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mail.drain || l.mail.kill || l.ctx.Err() != nil
}

func (l *lane) draining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mail.drain
}

// look returns what is known of the lane.
func (l *lane) look() face {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.face
}

// run lives the lane's life.
func (l *lane) run() {
	defer signal(l.s.drained)
	defer close(l.done)
	defer l.calls.Wait() // the next lane of the shard must not send while this one does
	defer l.cancel()
	for _, old := range l.after {
		<-old.done
	}
	if !l.load() {
		return
	}
	l.calls.Go(l.send)
	defer close(l.sends)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for l.ctx.Err() == nil {
		now := time.Now()
		if !l.takeMail(now) {
			return
		}
		actions := l.machine.Next(now)
		l.do(actions)
		l.show(now)
		if actions.Ended {
			return
		}
		if !actions.Wake.IsZero() {
			timer.Reset(actions.Wake.Sub(now))
		}
		select {
		case answer := <-l.answers:
			answer(time.Now())
		case <-l.wake:
		case <-timer.C:
		case <-l.ctx.Done():
		}
	}
}

// load finds out which keys are blocked. It reports false if the lane ends before it knows.
func (l *lane) load() bool {
	pause := backoff{policy: l.s.cfg.Outage}
	trouble := outage{log: l.trouble[0].log, what: "asking for blocked keys"}
	for !l.ending() && l.s.ctx.Err() == nil {
		call, cancel := context.WithTimeout(l.s.ctx, callTimeout)
		keys, err := l.s.feed.Blocked(call, l.shard)
		cancel()
		if err == nil {
			trouble.ok()
			l.machine.Blocked(keys)
			return true
		}
		trouble.fail(err)
		sleep(l.ctx, pause.next())
	}
	return false
}

// takeMail tells the machine what has come. It reports false if the lane is to end now.
func (l *lane) takeMail(now time.Time) bool {
	l.mu.Lock()
	m := l.mail
	l.mail.batches, l.mail.due, l.mail.exclude = nil, nil, nil
	full := l.s.tight.Load() || l.face.Buffered >= l.s.cfg.ReadAhead
	l.mu.Unlock()
	if m.kill {
		return false
	}
	l.machine.Renewed(m.renewed)
	l.machine.Full(full)
	if m.exclude != nil {
		l.machine.Exclude(*m.exclude)
	}
	if m.drain {
		l.machine.Stop(now.Add(l.s.cfg.DrainTimeout))
		return true
	}
	for _, b := range m.batches {
		l.machine.Read(b.Batch, b.bytes)
	}
	if len(m.due) > 0 {
		l.machine.Due(m.due)
	}
	return true
}

// do starts what the machine wants done.
func (l *lane) do(a shard.Actions) {
	if a.Publish != nil {
		l.sends <- a.Publish
	}
	if a.Retry != nil {
		l.begin(func() func(time.Time) {
			answer := l.publish(a.Retry)
			return func(now time.Time) { l.machine.Retried(answer, now) }
		})
	}
	if len(a.Defer) > 0 {
		l.begin(func() func(time.Time) {
			call, cancel := context.WithTimeout(l.s.ctx, callTimeout)
			defer cancel()
			err := l.s.feed.Defer(call, a.Defer)
			return func(now time.Time) {
				l.machine.Deferred(err, now)
				l.s.lookForDue()
			}
		})
	}
	if len(a.Conclude) > 0 {
		l.begin(func() func(time.Time) {
			call, cancel := context.WithTimeout(l.s.ctx, callTimeout)
			defer cancel()
			free, err := l.s.feed.Conclude(call, a.Conclude)
			return func(now time.Time) { l.machine.Concluded(free, err, now) }
		})
	}
	if a.Split != "" {
		l.split = a.Split
		l.s.log.Info("relay: one tenant holds up the others, and is read apart from them", "shard", l.shard, "tenant", l.split)
		l.drain()
	}
}

// send publishes the messages of the window, call by call. It is a goroutine of its own, because there may be a call for each
// message, and a new goroutine has to grow its stack each time.
func (l *lane) send() {
	for c := range l.sends {
		answer := l.publish(c)
		l.answers <- func(now time.Time) { l.machine.Published(answer, now) }
	}
}

// begin has a call made beside the lane, which is told of its outcome.
func (l *lane) begin(call func() func(now time.Time)) {
	l.calls.Go(func() { l.answers <- call() })
}

// publish makes a call of the publisher. What may kill the process goes alone, and its start is noted before.
func (l *lane) publish(c *shard.Call) (a shard.Answer) {
	ctx, cancel := context.WithDeadline(l.ctx, c.Deadline)
	defer cancel()
	if c.Alone {
		a.Alone = true
		select {
		case l.s.probing <- struct{}{}:
			defer func() { <-l.s.probing }()
		case <-ctx.Done():
			a.Err = ctx.Err()
			return a
		}
	}
	if c.Start != nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		a.Started, a.Err = l.s.feed.Suspect(call, *c.Start)
		if a.Err == nil {
			a.Err = ctx.Err() // it is too late to send: no answer would count as a confirmation
		}
		if a.Err == nil && l.ending() && !l.draining() {
			a.Err = context.Canceled // nobody listens any more
		}
		if a.Err != nil || shard.Deadly(a.Started) {
			return a
		}
	}
	begun := time.Now()
	a.Errs = l.s.pub.Publish(ctx, c.Messages)
	l.s.trace(ctx, c, a.Errs, time.Since(begun))
	l.s.sent(c.Messages, a.Errs)
	return a
}

// show lets others know how things stand, and tells those who wait for it.
func (l *lane) show(now time.Time) {
	standing, mark, count := l.machine.Standing(), l.machine.Mark(), l.machine.Count
	held, wantsDue := l.machine.WantsDue(now)
	l.mu.Lock()
	f := &l.face
	progress := mark.Version != f.mark.Version
	wantsDue = wantsDue && len(l.mail.due) == 0 // what was handed to the lane, and the machine does not know, is in other hands already
	due := wantsDue && (!f.wantsDue || len(held) != len(f.held) || len(held) > 0 && !standing.NextProbe.After(now))
	changed := minus(count, f.count)
	for _, b := range l.mail.batches {
		standing.Buffered += len(b.Messages)
		standing.Bytes += b.bytes
	}
	f.Standing, f.mark, f.count, f.held, f.wantsDue = standing, mark, count, held, wantsDue
	room := f.waits && l.s.cfg.spacious(&standing)
	f.waits = f.waits && !room
	l.mu.Unlock()

	l.s.count.add(changed)
	if progress {
		signal(l.s.settled)
	}
	if room {
		signal(l.s.more)
	}
	if due {
		signal(l.s.dueWake)
	}
	for _, told := range l.machine.News() {
		l.tell(told)
	}
	l.s.problems.add(l.machine.Problems())
}

func minus(a, b shard.Counts) shard.Counts {
	return shard.Counts{
		Published: a.Published - b.Published, Failed: a.Failed - b.Failed, Refused: a.Refused - b.Refused,
		Retried: a.Retried - b.Retried, Deferred: a.Deferred - b.Deferred, Dead: a.Dead - b.Dead,
	}
}

// tell writes what people want to know into the log.
func (l *lane) tell(t shard.Told) {
	r := l.s
	switch t.Event {
	case shard.Outage:
		l.trouble[0].fail(t.Err)
	case shard.Recovered:
		l.trouble[0].ok()
	case shard.CannotDefer:
		l.trouble[1].fail(t.Err)
	case shard.CanDefer:
		l.trouble[1].ok()
	case shard.Refused:
		r.refusals.log(r.log, slog.LevelWarn, "relay: message has failed, is deferred and will be tried again", l.shard, t)
	case shard.Died:
		r.deaths.log(r.log, slog.LevelError, "relay: message is dead, an operator decides: postrider dead show "+t.Message.ID.String(), l.shard, t)
	}
}

// push hands the lane what was read for it.
func (l *lane) push(b *feeds.Batch) {
	batch := sized{b, shard.Size(b)}
	l.post(func(m *mail) {
		m.batches = append(m.batches, batch)
		l.face.Buffered += len(b.Messages)
		l.face.Bytes += batch.bytes
	})
}

// unsettled reports whether something was confirmed that has not been settled.
func (f *face) unsettled() bool { return f.mark.Version != f.settled }

// renew notes that a Settle sent at the given time has succeeded, with the given version of the mark.
func (l *lane) renew(at time.Time, version uint64) {
	l.mu.Lock()
	l.mail.renewed = at
	l.face.settled = max(l.face.settled, version)
	l.mu.Unlock()
	signal(l.wake)
}

// age returns how long ago the lease was renewed.
func (l *lane) age(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return shard.Age(l.mail.renewed, now)
}

// spacious reports whether there is room that is worth a read: pages must not get tiny, nor the lane run dry. A lane whose
// messages all fail has nothing better to do than to take what there is room for.
func (c *Config) spacious(s *shard.Standing) bool {
	room := c.ReadAhead - s.Buffered
	return room >= (c.ReadAhead+1)/2 || room > 0 && s.Failing
}

// offer reports whether the lane has room for messages. If not, it tells the reader when it has.
func (l *lane) offer(cfg *Config) (f face, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mail.drain || l.mail.kill || l.ctx.Err() != nil {
		return l.face, false
	}
	ok = cfg.spacious(&l.face.Standing)
	l.face.waits = !ok
	return l.face, ok
}

// await has the lane tell the reader when it has let go of something.
func (l *lane) await() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.face.waits = true
}

// isBehind notes that more is known to wait than was read. It reports whether there is room for it.
func (l *lane) isBehind(cfg *Config) bool {
	l.mu.Lock()
	l.face.behind = time.Now()
	l.mu.Unlock()
	_, ok := l.offer(cfg)
	return ok
}

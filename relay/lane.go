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

// lane publishes the messages of one shard, or of a slice of one, for as long as the relay owns it.
// One goroutine owns the state machine: it passes events to the machine and starts the actions that
// the machine returns. Calls of the publisher and of the store run in other goroutines.
type lane struct {
	s       *session
	shard   int
	slice   *feeds.Slice // non-nil if the lane serves a slice
	machine *shard.Machine
	after   []*lane         // earlier lanes with the same keys; they may still be publishing
	done    chan struct{}   // closed when the lane has ended
	ctx     context.Context // for Publish
	cancel  context.CancelFunc
	wake    chan struct{}    // holds one token: the mailbox has changed
	sends   chan *shard.Call // calls for the sender
	answers chan func(now time.Time)
	calls   sync.WaitGroup // of the publisher and the store
	trouble [2]outage      // for publishing and for deferring

	split   string // the tenant to split off when the lane has ended; set before done is closed
	partner *lane  // the lane to merge with when both have ended; guarded by epoch.mu

	mu       sync.Mutex
	mail     mailbox
	snapshot snapshot
}

// mailbox is the input for the lane's goroutine.
type mailbox struct {
	batches []sized
	due     []feeds.Deferred
	exclude *[]postrider.ID // messages that must not be sent; nil if unchanged
	renewed time.Time       // when the last call that renewed the lease was sent; zero if none
	drain   bool            // finish what is in flight, then end
	kill    bool            // end now; the lane's state is void
}

// sized is a batch with its approximate size in memory.
type sized struct {
	*feeds.Batch
	bytes int
}

// snapshot is the state of the lane that other goroutines may read.
type snapshot struct {
	shard.Standing
	mark     shard.Mark
	settled  uint64           // the version of the mark that is settled
	count    shard.Counts     // what was added to the relay's counters
	wantsDue bool             // the lane can send deferred messages,
	held     []feeds.HeldName // except those of these names
	waits    bool             // the reader wants a signal when there is room
	behind   time.Time        // when the store last had more messages than were read
}

// newLane returns a lane without a lease. The shard may have been taken long ago, by a Balance
// whose answer was lost. The first Settle verifies the ownership.
func newLane(s *session, number int, slice *feeds.Slice, start shard.Start) *lane {
	log := s.log.With("shard", number)
	l := &lane{
		s:       s,
		shard:   number,
		slice:   slice,
		machine: shard.New(s.machine(number, slice != nil, s.splitter != nil), start),
		done:    make(chan struct{}),
		wake:    make(chan struct{}, 1),
		sends:   make(chan *shard.Call, 1),     // at most one at a time
		answers: make(chan func(time.Time), 3), // one per kind of call, so that sending never blocks
		trouble: [2]outage{{log: log, what: "publishing"}, {log: log, what: "deferring messages"}},
	}
	l.snapshot.behind = time.Now()
	l.snapshot.Suspicious = start.Suspects > 0
	l.ctx, l.cancel = context.WithCancel(s.hard)
	return l
}

// post changes the mailbox and wakes the lane.
func (l *lane) post(write func(m *mailbox)) {
	l.mu.Lock()
	write(&l.mail)
	l.mu.Unlock()
	signal(l.wake)
}

// drain makes the lane end as soon as that causes no repetition, at the latest after DrainTimeout:
// a store that keeps failing must not block the handover of the shard.
func (l *lane) drain() { l.post(func(m *mailbox) { m.drain = true }) }

// kill makes the lane end as soon as possible. If cut is set, it also cancels a running Publish.
func (l *lane) kill(cut bool) {
	l.post(func(m *mailbox) { m.kill = true })
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

// look returns the current snapshot.
func (l *lane) look() snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshot
}

// run runs the lane until it has drained or is killed.
func (l *lane) run() {
	defer signal(l.s.drained)
	defer close(l.done)
	defer l.calls.Wait() // the next lane of the shard must not send before this one has finished
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

// load loads the blocked keys. It reports false if the lane ends first.
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

// takeMail passes the contents of the mailbox to the machine. It reports false if the lane must end
// now.
func (l *lane) takeMail(now time.Time) bool {
	l.mu.Lock()
	m := l.mail
	l.mail.batches, l.mail.due, l.mail.exclude = nil, nil, nil
	full := l.s.tight.Load() || l.snapshot.Buffered >= l.s.cfg.ReadAhead
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

// do starts the actions that the machine returned.
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

// send publishes the calls of the window. It is one long-lived goroutine, because there may be a
// call for each message, and a new goroutine would grow its stack each time.
func (l *lane) send() {
	for c := range l.sends {
		answer := l.publish(c)
		l.answers <- func(now time.Time) { l.machine.Published(answer, now) }
	}
}

// begin runs call in a goroutine and passes its answer to the lane.
func (l *lane) begin(call func() func(now time.Time)) {
	l.calls.Go(func() { l.answers <- call() })
}

// publish calls the publisher. It sends a suspect message alone, after the store has recorded the
// start.
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
			a.Err = ctx.Err() // too late to send: an answer would not count
		}
		if a.Err == nil && l.ending() && !l.draining() {
			a.Err = context.Canceled // the lane was killed
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

// show updates the snapshot and signals the goroutines that wait for a change.
func (l *lane) show(now time.Time) {
	standing, mark, count := l.machine.Standing(), l.machine.Mark(), l.machine.Count
	held, wantsDue := l.machine.WantsDue(now)
	l.mu.Lock()
	f := &l.snapshot
	progress := mark.Version != f.mark.Version
	// Deferred messages in the mailbox, which the machine has not seen, are being handled already.
	wantsDue = wantsDue && len(l.mail.due) == 0
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

// tell logs an event of the machine.
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

// push passes a batch to the lane.
func (l *lane) push(b *feeds.Batch) {
	batch := sized{b, shard.Size(b)}
	l.post(func(m *mailbox) {
		m.batches = append(m.batches, batch)
		l.snapshot.Buffered += len(b.Messages)
		l.snapshot.Bytes += batch.bytes
	})
}

// unsettled reports whether confirmed messages are not settled yet.
func (f *snapshot) unsettled() bool { return f.mark.Version != f.settled }

// renew records that a Settle sent at the given time has succeeded with the given version of the
// mark.
func (l *lane) renew(at time.Time, version uint64) {
	l.mu.Lock()
	l.mail.renewed = at
	l.snapshot.settled = max(l.snapshot.settled, version)
	l.mu.Unlock()
	signal(l.wake)
}

// age returns the time since the lease was renewed.
func (l *lane) age(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return shard.Age(l.mail.renewed, now)
}

// spacious reports whether a read for the lane is worthwhile: half of ReadAhead is free, which
// avoids tiny pages and still keeps the lane busy. A failing lane reads whenever there is any room,
// to find messages that can be delivered.
func (c *Config) spacious(s *shard.Standing) bool {
	room := c.ReadAhead - s.Buffered
	return room >= (c.ReadAhead+1)/2 || room > 0 && s.Failing
}

// offer reports whether the lane has room for messages. If not, the lane signals the reader as soon
// as it has.
func (l *lane) offer(cfg *Config) (f snapshot, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mail.drain || l.mail.kill || l.ctx.Err() != nil {
		return l.snapshot, false
	}
	ok = cfg.spacious(&l.snapshot.Standing)
	l.snapshot.waits = !ok
	return l.snapshot, ok
}

// await makes the lane signal the reader when it has room.
func (l *lane) await() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshot.waits = true
}

// isBehind records that the store has more messages than were read. It reports whether the lane has
// room for them.
func (l *lane) isBehind(cfg *Config) bool {
	l.mu.Lock()
	l.snapshot.behind = time.Now()
	l.mu.Unlock()
	_, ok := l.offer(cfg)
	return ok
}

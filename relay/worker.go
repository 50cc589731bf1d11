package relay

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/relay/internal/shard"
	"github.com/postrider/postrider/store/feeds"
)

// worker publishes the messages of one shard, or of a slice of one, for as long as the relay owns it.
// One goroutine owns the state machine: it passes events to the machine and starts the actions that
// the machine returns. Calls of the publisher and of the store run in other goroutines.
type worker struct {
	s       *session
	shard   int
	slice   *feeds.Slice // non-nil if the worker serves a slice
	machine *shard.Machine
	after   []*worker       // earlier workers with the same keys; they may still be publishing
	done    chan struct{}   // closed when the worker has ended
	ctx     context.Context // for Publish
	cancel  context.CancelFunc
	wake    chan struct{}    // holds one token: the mailbox has changed
	sends   chan *shard.Call // calls for the sender
	answers chan func(now time.Time)
	calls   sync.WaitGroup // of the publisher and the store
	trouble [2]outage      // for publishing and for deferring
	recall  *recaller      // publishes

	split   string  // the tenant to split off when the worker has ended; set before done is closed
	partner *worker // the worker to merge with when both have ended; guarded by epoch.mu

	mu       sync.Mutex
	mail     mailbox
	snapshot snapshot
}

// mailbox is the input for the worker's goroutine.
type mailbox struct {
	read    int // messages so far
	batches []sized
	due     []feeds.Deferred
	asked   time.Time       // when the store was asked for them
	exclude *[]postrider.ID // messages that must not be sent; nil if unchanged
	renewed time.Time       // when the last call that renewed the lease was sent; zero if none
	drain   bool            // finish what is in flight, then end
	kill    bool            // end now; the worker's state is void
}

// sized is a batch with its approximate size in memory.
type sized struct {
	*feeds.Batch
	bytes int
}

// snapshot is the state of the worker that other goroutines may read.
type snapshot struct {
	shard.Standing
	mark     shard.Mark
	sent     time.Time        // when the oldest attempt began that the mark does not settle; zero if there is none
	settled  uint64           // the version of the mark that is settled
	count    shard.Counts     // what was added to the relay's counters
	wantsDue bool             // the worker can send deferred messages,
	held     []feeds.HeldName // except those of these names
	waits    bool             // the reader wants a signal when there is room
	behind   time.Time        // when the store last had more messages than were read
}

// newWorker returns a worker without a lease. The shard may have been taken long ago, by a Balance
// whose answer was lost. The first Settle verifies the ownership.
func newWorker(s *session, number int, slice *feeds.Slice, start shard.Start, share feeds.Share, asked time.Time) *worker {
	log := s.log.With("shard", number)
	w := &worker{
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
	w.snapshot.behind = time.Now()
	w.snapshot.Suspicious = start.Suspects > 0
	w.ctx, w.cancel = context.WithCancel(s.hard)
	var since time.Time
	if age, ok := share.Unsure[number]; ok {
		since = asked.Add(-age) // the age may be as old as the question
	}
	w.snapshot.sent = since // a settlement before the first step must not end the doubts
	w.recall = newRecaller(w.ctx, s, log, share.ID+"/"+s.cfg.Feed+"/"+strconv.Itoa(number), share.Terms[number], since)
	if !share.Deferred {
		w.recall.noneDeferred()
	}
	return w
}

// post changes the mailbox and wakes the worker.
func (w *worker) post(write func(m *mailbox)) {
	w.mu.Lock()
	write(&w.mail)
	w.mu.Unlock()
	signal(w.wake)
}

// drain makes the worker end as soon as that causes no repetition, at the latest after DrainTimeout:
// a store that keeps failing must not block the handover of the shard.
func (w *worker) drain() { w.post(func(m *mailbox) { m.drain = true }) }

// kill makes the worker end as soon as possible. If cut is set, it also cancels a running Publish.
func (w *worker) kill(cut bool) {
	w.post(func(m *mailbox) { m.kill = true })
	if cut {
		w.cancel()
	}
}

func (w *worker) ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mail.drain || w.mail.kill || w.ctx.Err() != nil
}

func (w *worker) draining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mail.drain
}

// look returns the current snapshot.
func (w *worker) look() snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot
}

// run runs the worker until it has drained or is killed.
func (w *worker) run() {
	defer signal(w.s.drained)
	defer close(w.done)
	defer w.calls.Wait() // the next worker of the shard must not send before this one has finished
	defer w.cancel()
	for _, old := range w.after {
		<-old.done
	}
	if !w.load() {
		return
	}
	w.calls.Go(w.send)
	defer close(w.sends)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for w.ctx.Err() == nil {
		now := time.Now()
		if !w.takeMail(now) {
			return
		}
		actions := w.machine.Next(now)
		w.show(now) // first: what is settled meanwhile must include that the messages may have been sent
		w.do(actions)
		if actions.Ended {
			return
		}
		if !actions.Wake.IsZero() {
			timer.Reset(actions.Wake.Sub(now))
		}
		select {
		case answer := <-w.answers:
			answer(time.Now())
		case <-w.wake:
		case <-timer.C:
		case <-w.ctx.Done():
		}
	}
}

// load loads the blocked keys. It reports false if the worker ends first.
func (w *worker) load() bool {
	pause := backoff{policy: w.s.cfg.Outage}
	trouble := outage{log: w.trouble[0].log, what: "asking for blocked keys"}
	for !w.ending() && w.s.ctx.Err() == nil {
		call, cancel := context.WithTimeout(w.s.ctx, callTimeout)
		keys, err := w.s.feed.Blocked(call, w.shard)
		cancel()
		if err == nil {
			trouble.ok()
			w.machine.Blocked(keys)
			return true
		}
		trouble.fail(err)
		sleep.For(w.ctx, pause.next())
	}
	return false
}

// takeMail passes the contents of the mailbox to the machine. It reports false if the worker must end
// now.
func (w *worker) takeMail(now time.Time) bool {
	w.mu.Lock()
	m := w.mail
	w.mail.batches, w.mail.due, w.mail.exclude = nil, nil, nil
	full := w.s.tight.Load() || w.snapshot.Buffered >= w.s.cfg.ReadAhead
	w.mu.Unlock()
	if m.kill {
		return false
	}
	w.machine.Renewed(m.renewed)
	w.machine.Full(full)
	if m.exclude != nil {
		w.machine.Exclude(*m.exclude)
	}
	if m.drain {
		w.machine.Stop(now.Add(w.s.cfg.DrainTimeout))
		return true
	}
	for _, b := range m.batches {
		w.machine.Read(b.Batch, b.bytes)
	}
	if len(m.due) > 0 {
		w.machine.Due(m.due, m.asked)
	}
	return true
}

// do starts the actions that the machine returned.
func (w *worker) do(a shard.Actions) {
	if a.Publish != nil {
		w.sends <- a.Publish
	}
	if a.Retry != nil {
		w.recall.resume(a.Retry.Messages, a.Retry.Unsure)
		w.begin(func() func(time.Time) {
			answer := w.publish(a.Retry)
			if answer.Err == nil {
				answer.Unsure = w.recall.tried(a.Retry.Messages, answer.Errs)
			}
			return func(now time.Time) { w.machine.Retried(answer, now) }
		})
	}
	if len(a.Defer) > 0 {
		w.recall.postpone(a.Defer)
		w.begin(func() func(time.Time) {
			call, cancel := context.WithTimeout(w.s.ctx, callTimeout)
			defer cancel()
			err := w.s.feed.Defer(call, a.Defer)
			return func(now time.Time) {
				w.machine.Deferred(err, now)
				w.s.lookForDue()
			}
		})
	}
	if len(a.Conclude) > 0 {
		w.recall.hold(a.Conclude)
		w.begin(func() func(time.Time) {
			call, cancel := context.WithTimeout(w.s.ctx, callTimeout)
			defer cancel()
			free, err := w.s.feed.Conclude(call, a.Conclude)
			return func(now time.Time) { w.machine.Concluded(free, err, now) }
		})
	}
	if a.Split != "" {
		w.split = a.Split
		w.s.log.Info("relay: one tenant holds up the others, and is read apart from them", "shard", w.shard, "tenant", w.split)
		w.drain()
	}
}

// send publishes the calls of the window. It is one long-lived goroutine, because there may be a
// call for each message, and a new goroutine would grow its stack each time.
func (w *worker) send() {
	for c := range w.sends {
		answer := w.publish(c)
		w.answers <- func(now time.Time) { w.machine.Published(answer, now) }
	}
}

// begin runs call in a goroutine and passes its answer to the worker.
func (w *worker) begin(call func() func(now time.Time)) {
	w.calls.Go(func() { w.answers <- call() })
}

// publish calls the publisher. It sends a suspect message alone, after the store has recorded the
// start.
func (w *worker) publish(c *shard.Call) (a shard.Answer) {
	ctx, cancel := context.WithDeadline(w.ctx, c.Deadline)
	defer cancel()
	if c.Alone {
		a.Alone = true
		select {
		case w.s.probing <- struct{}{}:
			defer func() { <-w.s.probing }()
		case <-ctx.Done():
			a.Err = ctx.Err()
			return a
		}
	}
	if c.Start != nil {
		if err := w.recall.prepare(ctx, &c.Messages[0]); err != nil {
			a.Errs = []error{err}
			return a
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		a.Started, a.Err = w.s.feed.Suspect(call, *c.Start)
		if a.Err == nil {
			a.Err = ctx.Err() // too late to send: an answer would not count
		}
		if a.Err == nil && w.ending() && !w.draining() {
			a.Err = context.Canceled // the worker was killed
		}
		if a.Err != nil || shard.TooManyStarts(a.Started) {
			return a
		}
	}
	begun := time.Now()
	a.Errs = w.recall.publish(ctx, c.Messages)
	w.s.trace(ctx, c, a.Errs, time.Since(begun))
	w.s.sent(c.Messages, a.Errs)
	return a
}

// show updates the snapshot and signals the goroutines that wait for a change.
func (w *worker) show(now time.Time) {
	standing, mark, count := w.machine.Standing(), w.machine.Mark(), w.machine.Count
	w.recall.pass(standing.Passed)
	sent := w.machine.Sent()
	if since := w.recall.since(); sent.IsZero() || !since.IsZero() && since.Before(sent) {
		sent = since
	}
	held, wantsDue := w.machine.WantsDue(now)
	w.mu.Lock()
	f := &w.snapshot
	progress := mark.Version != f.mark.Version
	// Deferred messages in the mailbox, which the machine has not seen, are being handled already.
	wantsDue = wantsDue && len(w.mail.due) == 0
	due := wantsDue && (!f.wantsDue || len(held) != len(f.held) || len(held) > 0 && !standing.NextProbe.After(now))
	changed := minus(count, f.count)
	for _, b := range w.mail.batches {
		standing.Buffered += len(b.Messages)
		standing.Bytes += b.bytes
	}
	f.Standing, f.mark, f.sent, f.count, f.held, f.wantsDue = standing, mark, sent, count, held, wantsDue
	room := f.waits && w.s.cfg.spacious(&standing)
	f.waits = f.waits && !room
	w.mu.Unlock()

	w.s.count.add(changed)
	if progress {
		signal(w.s.settled)
	}
	if room {
		signal(w.s.more)
	}
	if due {
		signal(w.s.dueWake)
	}
	for _, told := range w.machine.News() {
		w.tell(told)
	}
	w.s.problems.add(w.machine.Problems())
}

func minus(a, b shard.Counts) shard.Counts {
	return shard.Counts{
		Published: a.Published - b.Published, Failed: a.Failed - b.Failed, Refused: a.Refused - b.Refused,
		Retried: a.Retried - b.Retried, Deferred: a.Deferred - b.Deferred, Dead: a.Dead - b.Dead,
	}
}

// tell logs an event of the machine.
func (w *worker) tell(t shard.Told) {
	r := w.s
	switch t.Event {
	case shard.Outage:
		w.trouble[0].fail(t.Err)
	case shard.Recovered:
		w.trouble[0].ok()
	case shard.CannotDefer:
		w.trouble[1].fail(t.Err)
	case shard.CanDefer:
		w.trouble[1].ok()
	case shard.Refused:
		r.refusals.log(r.log, slog.LevelWarn, "relay: message has failed, is deferred and will be tried again", w.shard, t)
	case shard.Died:
		r.deaths.log(r.log, slog.LevelError, "relay: message is dead, an operator decides: postrider dead show "+t.Message.ID.String(), w.shard, t)
	}
}

// push passes a batch to the worker.
func (w *worker) push(b *feeds.Batch) {
	batch := sized{b, shard.Size(b)}
	w.post(func(m *mailbox) {
		m.read += len(b.Messages)
		m.batches = append(m.batches, batch)
		w.snapshot.Buffered += len(b.Messages)
		w.snapshot.Bytes += batch.bytes
	})
}

// reach records that the reader is at the end of the log.
func (w *worker) reach() {
	w.mu.Lock()
	read := w.mail.read
	w.mu.Unlock()
	if w.recall.reach(read) {
		signal(w.wake)
	}
}

// unsettled reports whether confirmed messages are not settled yet.
func (f *snapshot) unsettled() bool { return f.mark.Version != f.settled }

// renew records that a Settle sent at the given time has succeeded with the given version of the
// mark.
func (w *worker) renew(at time.Time, version uint64) {
	w.mu.Lock()
	w.mail.renewed = at
	w.snapshot.settled = max(w.snapshot.settled, version)
	w.mu.Unlock()
	signal(w.wake)
}

// age returns the time since the lease was renewed.
func (w *worker) age(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return shard.Age(w.mail.renewed, now)
}

// spacious reports whether a read for the worker is worthwhile: half of ReadAhead is free, which
// avoids tiny pages and still keeps the worker busy. A failing worker reads whenever there is any room,
// to find messages that can be delivered.
func (c *Config) spacious(s *shard.Standing) bool {
	room := c.ReadAhead - s.Buffered
	return room >= (c.ReadAhead+1)/2 || room > 0 && s.Failing
}

// offer reports whether the worker has room for messages. If not, the worker signals the reader as soon
// as it has.
func (w *worker) offer(cfg *Config) (f snapshot, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mail.drain || w.mail.kill || w.ctx.Err() != nil {
		return w.snapshot, false
	}
	ok = cfg.spacious(&w.snapshot.Standing)
	w.snapshot.waits = !ok
	return w.snapshot, ok
}

// await makes the worker signal the reader when it has room.
func (w *worker) await() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshot.waits = true
}

// isBehind records that the store has more messages than were read. It reports whether the worker has
// room for them.
func (w *worker) isBehind(cfg *Config) bool {
	w.mu.Lock()
	w.snapshot.behind = time.Now()
	w.mu.Unlock()
	_, ok := w.offer(cfg)
	return ok
}

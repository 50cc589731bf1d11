package shard

import (
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Blocked records the keys that have deferred messages. The machine sends nothing before this
// event.
func (m *Machine) Blocked(keys []string) {
	for _, key := range keys {
		m.deferrals.blocked[hashText(key)] = true
	}
	m.loaded = true
}

// Renewed records that a call sent at the given time has renewed the lease.
func (m *Machine) Renewed(at time.Time) { m.lease.renewed = at }

// Read adds a batch that is not empty, with its [Size].
func (m *Machine) Read(b *feeds.Batch, bytes int) {
	if !m.stop.given {
		m.inbox = append(m.inbox, run{Batch: b, bytes: bytes})
	}
}

// Full records whether nothing can be read for the shard until messages leave the window.
func (m *Machine) Full(full bool) { m.window.full = full }

// Stop makes the machine end as soon as that causes no repetition, or at the deadline.
func (m *Machine) Stop(deadline time.Time) {
	if !m.stop.given {
		m.stop, m.inbox = stop{true, deadline}, nil
		m.due.queue = nil
	}
}

// Next returns the actions for now. It returns each action once; the answer to an action is an
// event.
func (m *Machine) Next(now time.Time) (a Actions) {
	if !m.loaded {
		a.Ended = m.stop.given
		return a
	}
	if !m.window.flying {
		m.takeIn(now)
		if m.deferrals.hasExcluded {
			m.skipExcluded()
		}
		if m.sweeping && m.names.held > 0 {
			m.sweeping = m.sweep()
		}
		if m.stop.given {
			m.fillGaps()
		} else if a.Split = m.tenants.dominant(&m.window, now, m.cfg.ReadAhead); a.Split == "" {
			a.Publish = m.nextCall(now)
		}
	}
	a.Retry = m.nextRetry(now)
	if m.deferrals.busy == 0 && m.due.recording == 0 { // one call of the store at a time
		m.dropExcluded()
		if a.Defer = m.nextDeferral(now); a.Defer == nil {
			a.Conclude = m.nextConclusion(now)
		}
	}
	a.Ended = m.stop.given && !m.busy() && (!m.repeats() || !now.Before(m.stop.deadline))
	a.Wake = m.wake(now)
	return a
}

// busy reports whether any call is in flight.
func (m *Machine) busy() bool {
	return m.window.flying || len(m.due.call) > 0 || m.deferrals.busy > 0 || m.due.recording > 0
}

// repeats reports whether something would be repeated if the machine ended now.
func (m *Machine) repeats() bool { return m.window.last > m.window.first || len(m.due.done) > 0 }

// wake returns the next time at which Next may return a new action without an event; zero if there
// is none.
func (m *Machine) wake(now time.Time) (at time.Time) {
	for _, t := range []time.Time{m.pace.notBefore, m.deferrals.next, m.due.next, m.names.nextProbe(), m.stop.deadline} {
		if t.After(now) {
			at = earlier(at, t)
		}
	}
	return at
}

// takeIn moves the batches that were read into the window.
func (m *Machine) takeIn(now time.Time) {
	if len(m.inbox) == 0 {
		return
	}
	for _, r := range m.inbox {
		if now.Before(m.pace.notBefore) && m.names.mayPass(r.Messages) {
			m.pace.resume(now)
		}
		at := m.window.end
		m.window.add(r.Batch, r.bytes)
		m.sort(r.Batch, at)
	}
	m.sweeping = m.sweeping || m.names.held > 0
	clear(m.inbox)
	m.inbox = m.inbox[:0]
	m.advance() // canaries and messages that are known to have arrived
}

// nextCall returns the next call for messages of the window.
func (m *Machine) nextCall(now time.Time) *Call {
	if m.window.empty() {
		m.failing = false // all failed messages were deferred
		return nil
	}
	if now.Before(m.pace.notBefore) {
		return nil
	}
	deadline, ok := m.lease.safeUntil(now)
	if !ok {
		return nil
	}
	c := choice{messages: m.pace.limit, bytes: m.cfg.CallBytes, leastTried: m.failing, strict: m.cfg.Strict}
	alone := m.suspects.left > 0
	if alone {
		c.messages = 1
	}
	msgs := m.window.pick(c)
	if len(msgs) == 0 {
		m.failing = false // all failed messages were deferred, and say nothing about the destination
		return nil
	}
	call := &Call{Messages: msgs, Attempts: m.window.attempts(), Deadline: deadline, Alone: alone}
	if alone {
		pos := m.only()
		batch, index := m.window.place(pos)
		call.Start = m.suspects.start(int64(pos), feeds.Start{Batch: batch, Index: index})
	}
	if m.window.oldest().IsZero() {
		m.window.sent = now
	}
	m.window.flying = true
	m.pace.began = now
	m.pace.call = msgs
	return call
}

// only returns the position of the message of a call that has a single one.
func (m *Machine) only() int {
	if m.window.tracked {
		return m.window.picked[0]
	}
	return m.window.first
}

// Published processes the answer to a call for messages of the window.
func (m *Machine) Published(a Answer, now time.Time) {
	w := &m.window
	call := m.pace.call
	m.pace.call = nil
	if a.Err != nil { // nothing was sent
		w.flying = false
		m.pace.backOff(now, &m.cfg.Retry, m.cfg.Retry.after(1))
		m.tell(Told{Event: CannotDefer, Err: a.Err})
		return
	}
	if a.Started > 0 {
		pos := m.only()
		m.suspects.noted(int64(pos), a.Started)
		if deaths, kills := m.suspects.kills(int64(pos)); kills {
			w.track()
			w.flying = false
			m.refuse(pos, m.cfg.Retry.Message.Attempts, suspectError(deaths))
			return
		}
	}
	m.pace.fit(now, w.size, m.cfg.BatchSize)
	m.memory.note(call, a.Errs, now)
	m.Count.Retried += int64(w.repeated)
	passed, failures := w.record(a.Errs)
	m.Count.Published += int64(passed)
	m.Count.Failed += int64(failures)
	if passed > 0 {
		m.pace.failures = 0
	}
	m.failing = passed == 0
	if failures > 0 {
		m.classifyAll(call, a.Errs, passed, now)
	} else {
		m.names.note(call, nil, passed)
		if m.news.troubled && w.order.failed == 0 {
			m.news.troubled = false
			m.tell(Told{Event: Recovered})
		}
	}
	if passed > 0 {
		m.advance()
	}
}

// classifyAll decides what to do with the failed messages of a call, and pauses the shard if the
// destination seems to be down.
func (m *Machine) classifyAll(call []postrider.Message, errs []error, passed int, now time.Time) {
	w := &m.window
	texts := make([]string, len(call))
	for i := range call {
		if err := answer(errs, i); err != nil && !errors.Is(err, postrider.ErrNotTried) {
			texts[i] = m.names.nameOf(&call[i])
			m.names.watch(texts[i]).fail(&call[i], now)
		}
	}
	m.names.note(call, errs, passed)
	few := w.full && passed == 0 && w.fewFail(fewKeys)
	before := m.names.passedBefore(call, passed)
	var cause error
	var retryAfter time.Duration // the shortest of the messages that stay
	left := false
	var stuck map[uint64]bool // failed keys: a publisher that keeps order did not try the later messages of such a key
	for i, pos := range w.picked {
		err := answer(errs, i)
		// A message that is no longer open is being deferred with an earlier one of its key.
		if err == nil || errors.Is(err, postrider.ErrNotTried) || !w.order.isOpen(pos) {
			continue
		}
		s := w.order.at(pos)
		if m.cfg.KeepsOrder && s.key != 0 {
			if stuck[s.key] {
				continue
			}
			if stuck == nil {
				stuck = make(map[uint64]bool)
			}
			stuck[s.key] = true
		}
		known := m.names.watch(texts[i])
		if s.tries == 0 && postrider.ClassOf(err) == postrider.ClassPermanent {
			known.refused++
		}
		e := evidence{held: known.held, refused: known.refused, full: w.full, few: few}
		e.same = passed > 0 && known.passed == m.names.calls || s.tries > 0 && int32(known.passed-s.seen) > 0
		e.tries, e.others = w.order.blame(pos, m.names.calls, passed > 0)
		v := classify(err, e)
		if (v == holds || v == waits) && !w.order.isHead(pos, w.first) {
			v = stays // the deferred copy must not overtake the earlier messages of its key
		}
		if v == holds && !m.names.hold(texts[i], now, &m.cfg.Retry) {
			v = waits
		}
		left = left || v != stays
		switch v {
		case counts:
			m.Count.Refused++
			m.refuse(pos, min(e.tries, ownTries), err)
			continue
		case holds:
			m.names.addProblem(texts[i], err)
			m.sweeping = true
			m.wantKey(pos, feeds.Deferral{Status: feeds.StatusHeld, Name: texts[i], Cause: err.Error()})
		case waits:
			m.names.addProblem(texts[i], err)
			m.wantKey(pos, feeds.Deferral{Status: feeds.StatusRetry, Delay: m.cfg.Retry.waiting(0, err), Cause: err.Error()})
		case stays:
			if postrider.ScopeOf(err) == postrider.ScopeName {
				m.names.addProblem(texts[i], err)
			} else {
				m.names.addProblem("", err)
			}
			if asked := RetryAfter(err); cause == nil || asked < retryAfter {
				retryAfter = asked
			}
		}
		if cause == nil {
			cause = err
		}
	}
	m.names.forget(now)
	if cause != nil {
		m.news.troubled = true
		m.tell(Told{Event: Outage, Err: cause})
	}
	// What looks like an outage pauses the shard: the rest of the window would fail too. If only
	// one name has failed and another has just succeeded, the next call shows whether it is an
	// outage.
	if passed == 0 && !left && !before {
		m.pace.backOff(now, &m.cfg.Retry, retryAfter)
	}
}

// News returns the events for the log since the last call.
func (m *Machine) News() []Told {
	told := m.news.told
	m.news.told = nil
	return told
}

// Problems returns the problems of the destination since the last call.
func (m *Machine) Problems() []feeds.Problem { return m.names.takeProblems() }

// Mark returns how far the shard is confirmed.
func (m *Machine) Mark() Mark { return m.mark }

// Sent returns when the oldest attempt began to send a message that [Machine.Mark] does not include, or
// a deferred one whose outcome the store does not know; zero if there is none.
func (m *Machine) Sent() time.Time { return earlier(m.window.oldest(), m.due.begun.oldest()) }

// Recall returns the messages that were confirmed recently.
func (m *Machine) Recall() map[postrider.ID]bool { return m.memory.recall() }

// Standing is the state of the machine as the relay shows and uses it.
type Standing struct {
	Passed      int // messages in the confirmed prefix
	Buffered    int // messages that were read and are not in it
	Bytes       int // their approximate size in memory
	BlockedKeys int
	HeldNames   int
	Failing     bool // the last call confirmed nothing
	Suspicious  bool // a message may crash the process: settle before the next one is sent
	NextProbe   time.Time
}

// Standing returns the current state.
func (m *Machine) Standing() Standing {
	s := Standing{
		Passed: m.window.passed, Buffered: m.window.end - m.window.passed, Bytes: m.window.bytes, BlockedKeys: len(m.deferrals.blocked), HeldNames: m.names.held,
		Failing: m.failing, Suspicious: m.suspects.left > 0, NextProbe: m.names.nextProbe(),
	}
	for _, r := range m.inbox {
		s.Buffered += len(r.Messages)
		s.Bytes += r.bytes
	}
	return s
}

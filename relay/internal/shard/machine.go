package shard

import (
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Blocked takes in which keys have deferred messages. Nothing is sent before.
func (m *Machine) Blocked(keys []string) {
	for _, key := range keys {
		m.deferrals.blocked[hashText(key)] = true
	}
	m.loaded = true
}

// Renewed takes in that the lease was renewed by a call that was sent at the given time.
func (m *Machine) Renewed(at time.Time) { m.lease.renewed = at }

// Read takes in a batch that is not empty, and its [Size].
func (m *Machine) Read(b *feeds.Batch, bytes int) {
	if !m.stop.given {
		m.inbox = append(m.inbox, run{Batch: b, bytes: bytes})
	}
}

// Full takes in whether nothing can be read for the shard until something leaves the window.
func (m *Machine) Full(full bool) { m.window.full = full }

// Stop makes the machine end as soon as that repeats nothing, or when its patience has ended.
func (m *Machine) Stop(patience time.Time) {
	if !m.stop.given {
		m.stop, m.inbox = stop{true, patience}, nil
		m.due.queue = nil
	}
}

// Next returns what is to be done now. Each action is done once; its answer is an event.
func (m *Machine) Next(now time.Time) (a Actions) {
	if !m.loaded {
		a.Ended = m.stop.given
		return a
	}
	if !m.window.flying {
		m.takeIn(now)
		if m.deferrals.passes {
			m.passOver()
		}
		if m.sweeping && m.names.held > 0 {
			m.sweeping = m.sweep()
		}
		if m.stop.given {
			m.fillGaps()
		} else if a.Split = m.tenants.holdup(&m.window, now, m.cfg.ReadAhead); a.Split == "" {
			a.Publish = m.nextCall(now)
		}
	}
	a.Retry = m.nextRetry(now)
	if m.deferrals.busy == 0 && m.due.telling == 0 { // one call of the store at a time
		m.spare()
		if a.Defer = m.nextDeferral(now); a.Defer == nil {
			a.Conclude = m.nextConclusion(now)
		}
	}
	a.Ended = m.stop.given && !m.busy() && (!m.leaves() || !now.Before(m.stop.patience))
	a.Wake = m.wake(now)
	return a
}

// busy reports whether something is under way.
func (m *Machine) busy() bool {
	return m.window.flying || len(m.due.call) > 0 || m.deferrals.busy > 0 || m.due.telling > 0
}

// leaves reports whether something would be repeated if the machine ended now.
func (m *Machine) leaves() bool { return m.window.last > m.window.first || len(m.due.done) > 0 }

// wake returns when time alone changes what is to be done.
func (m *Machine) wake(now time.Time) (at time.Time) {
	for _, t := range []time.Time{m.pace.calm, m.deferrals.next, m.due.next, m.names.nextProbe(), m.stop.patience} {
		if t.After(now) {
			at = earlier(at, t)
		}
	}
	return at
}

// takeIn moves what was read into the window.
func (m *Machine) takeIn(now time.Time) {
	if len(m.inbox) == 0 {
		return
	}
	for _, r := range m.inbox {
		if now.Before(m.pace.calm) && m.names.mayPass(r.Messages) {
			m.pace.resume(now)
		}
		at := m.window.end
		m.window.add(r.Batch, r.bytes)
		m.sort(r.Batch, at)
	}
	m.sweeping = m.sweeping || m.names.held > 0
	clear(m.inbox)
	m.inbox = m.inbox[:0]
	m.advance() // canaries, and what is known to have arrived
}

// nextCall returns the next call of messages of the window.
func (m *Machine) nextCall(now time.Time) *Call {
	if m.window.empty() {
		m.failing = false // whatever has failed is deferred
		return nil
	}
	if now.Before(m.pace.calm) {
		return nil
	}
	deadline, ok := m.lease.safeUntil(now)
	if !ok {
		return nil
	}
	c := choice{messages: m.pace.limit, bytes: m.cfg.CallBytes, wary: m.failing, strict: m.cfg.Strict}
	alone := m.suspects.left > 0
	if alone {
		c.messages = 1
	}
	msgs := m.window.pick(c)
	if len(msgs) == 0 {
		m.failing = false // whatever has failed is deferred: it says nothing of the destination any more
		return nil
	}
	call := &Call{Messages: msgs, Attempts: m.window.attempts(), Deadline: deadline, Alone: alone}
	if alone {
		pos := m.only()
		batch, index := m.window.place(pos)
		call.Start = m.suspects.start(int64(pos), feeds.Start{Batch: batch, Index: index})
	}
	m.window.flying = true
	m.pace.began = now
	m.pace.call = msgs
	return call
}

// only returns the message of a call that has one.
func (m *Machine) only() int {
	if m.window.tracked {
		return m.window.picked[0]
	}
	return m.window.first
}

// Published takes in how a call of messages of the window has ended.
func (m *Machine) Published(a Answer, now time.Time) {
	w := &m.window
	call := m.pace.call
	m.pace.call = nil
	if a.Err != nil { // nothing was sent
		w.flying = false
		m.pace.rest(now, &m.cfg.Retry, m.cfg.Retry.after(1))
		m.tell(Told{Event: CannotDefer, Err: a.Err})
		return
	}
	if a.Started > 0 {
		pos := m.only()
		m.suspects.noted(int64(pos), a.Started)
		if deaths, kills := m.suspects.kills(int64(pos)); kills {
			w.track()
			w.flying = false
			m.refuse(pos, m.cfg.Retry.Message.Attempts, deadly(deaths))
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
		m.judgeAll(call, a.Errs, passed, now)
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

// judgeAll decides about the messages of a call that have failed, and has the shard pause if the destination seems to be away.
func (m *Machine) judgeAll(call []postrider.Message, errs []error, passed int, now time.Time) {
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
	var retryAfter time.Duration // the shortest, of those that stay
	left := false
	var stuck map[uint64]bool // keys of which one has failed: a publisher that keeps order has not tried those behind it
	for i, pos := range w.picked {
		err := answer(errs, i)
		if err == nil || errors.Is(err, postrider.ErrNotTried) || !w.order.isOpen(pos) { // or it leaves with an earlier one of its key
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
		v := judge(err, e)
		if (v == holds || v == waits) && !w.order.isHead(pos, w.first) {
			v = stays // it must not be sent from elsewhere before the earlier ones of its key
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
			m.names.trouble(texts[i], err)
			m.sweeping = true
			m.wantKey(pos, feeds.Deferral{Status: feeds.StatusHeld, Name: texts[i], Cause: err.Error()})
		case waits:
			m.names.trouble(texts[i], err)
			m.wantKey(pos, feeds.Deferral{Status: feeds.StatusRetry, Delay: m.cfg.Retry.waiting(0, err), Cause: err.Error()})
		case stays:
			if postrider.ScopeOf(err) == postrider.ScopeName {
				m.names.trouble(texts[i], err)
			} else {
				m.names.trouble("", err)
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
	// What looks like an outage stops the shard: the rest of the window would fare no better. Where only one name has failed, and
	// another has just passed, the next call tells which it is.
	if passed == 0 && !left && !before {
		m.pace.rest(now, &m.cfg.Retry, retryAfter)
	}
}

// News returns what has happened since it was last asked for.
func (m *Machine) News() []Told {
	told := m.news.told
	m.news.told = nil
	return told
}

// Problems returns what is to be reported since it was last asked for.
func (m *Machine) Problems() []feeds.Problem { return m.names.takeProblems() }

// Mark returns how far the shard is confirmed.
func (m *Machine) Mark() Mark { return m.mark }

// Recall returns which messages were confirmed lately.
func (m *Machine) Recall() map[postrider.ID]bool { return m.memory.recall() }

// Standing is what others want to know of the machine.
type Standing struct {
	Buffered    int // messages that were read and are not in the confirmed prefix
	Bytes       int // and what they take in memory, about
	BlockedKeys int
	HeldNames   int
	Failing     bool // the last call confirmed nothing
	Suspicious  bool // a message may kill the process: what is confirmed is to be settled before the next one
	NextProbe   time.Time
}

// Standing returns how things stand.
func (m *Machine) Standing() Standing {
	s := Standing{
		Buffered: m.window.end - m.window.passed, Bytes: m.window.bytes, BlockedKeys: len(m.deferrals.blocked), HeldNames: m.names.held,
		Failing: m.failing, Suspicious: m.suspects.left > 0, NextProbe: m.names.nextProbe(),
	}
	for _, r := range m.inbox {
		s.Buffered += len(r.Messages)
		s.Bytes += r.bytes
	}
	return s
}

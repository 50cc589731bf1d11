package shard

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// WantsDue reports whether the machine can send deferred messages, and which names are held.
func (m *Machine) WantsDue(now time.Time) (held []feeds.HeldName, ok bool) {
	d := &m.due
	_, alive := m.lease.safeUntil(now)
	if !alive || !m.loaded || m.stop.given || m.cfg.Slice || len(d.queue)+len(d.call)+len(d.done) > 0 || now.Before(d.next) {
		return nil, false
	}
	return m.names.heldNames(m.cfg.Shard, now), true
}

// Due adds deferred messages that the store, asked at the given time, returned as due. A message to a
// held name that is no probe joins the other messages held for that name; later ones of its key keep
// waiting.
func (m *Machine) Due(msgs []feeds.Deferred, asked time.Time) {
	if len(m.due.queue) == 0 || asked.Before(m.due.asked) {
		m.due.asked = asked
	}
	first, stuck := make(map[string]bool), make(map[string]bool) // keys
	for _, d := range msgs {
		key := d.OrderKey()
		if d.Blocking && stuck[key] {
			continue
		}
		behind := d.Blocking && first[key]
		first[key] = true
		name, held := m.names.isHeld(&d.Message)
		if known := m.names.watched[name]; !held || known.probing && d.Status == feeds.StatusHeld && !behind {
			m.due.queue = append(m.due.queue, d)
			continue
		}
		stuck[key] = true
		if !behind && d.Status != feeds.StatusHeld {
			c := feeds.Conclusion{Shard: d.Shard, Seq: d.Seq, Status: feeds.StatusHeld, Name: name, Attempts: d.Attempts, Cause: d.LastError}
			if d.Unsure > 0 {
				c.Sent = asked.Add(-d.Unsure)
			}
			m.due.done = append(m.due.done, c)
		}
	}
}

// nextRetry returns the next call for deferred messages. It does not wait until the store has
// recorded the outcome of the call before, so that the messages of a key do not proceed at the pace
// of the store. Only suspect messages wait for it.
func (m *Machine) nextRetry(now time.Time) *Call {
	d := &m.due
	if len(d.queue) == 0 || len(d.call) > 0 || len(d.done) > 0 && m.inherited.left > 0 || m.stop.given || now.Before(d.next) {
		return nil
	}
	deadline, ok := m.lease.safeUntil(now)
	if !ok {
		return nil
	}
	c := &Call{Deadline: deadline, Alone: m.inherited.left > 0}
	if c.Alone {
		first := &d.queue[0]
		d.call, d.queue = d.queue[:1:1], d.queue[1:]
		c.Start = m.inherited.start(first.Seq, feeds.Start{Shard: first.Shard, Seq: first.Seq})
	} else {
		d.call, d.queue = m.round(d.queue)
	}
	d.begun.call = now
	for i := range d.call {
		msg := d.call[i].Message
		if job := d.call[i].Job; job != 0 { // otherwise a broker that has seen the message would drop it as a duplicate
			msg.Repetition = fmt.Sprintf("replay-%d", job)
		} else if unsure := d.call[i].Unsure; unsure > 0 {
			if c.Unsure == nil {
				c.Unsure = make([]time.Time, len(d.call))
			}
			c.Unsure[i] = d.asked.Add(-unsure)
		}
		c.Messages, c.Attempts = append(c.Messages, msg), append(c.Attempts, d.call[i].Attempts)
	}
	return c
}

// round splits the due messages into those that may go in one call and the rest.
func (m *Machine) round(queue []feeds.Deferred) (round, rest []feeds.Deferred) {
	seen := make(map[string]bool)
	bytes := 0
	for _, d := range queue {
		key := d.OrderKey()
		bytes += sizeOf(&d.Message)
		if len(round) > 0 && (len(round) == m.cfg.BatchSize || bytes > m.cfg.CallBytes) || key != "" && seen[key] && !m.cfg.KeepsOrder {
			rest = append(rest, d)
			continue
		}
		seen[key] = true
		round = append(round, d)
	}
	return round, rest
}

// Retried processes the answer to a call for deferred messages.
func (m *Machine) Retried(a Answer, now time.Time) {
	d := &m.due
	call := d.call
	d.call = nil
	began := d.begun.call
	d.begun.call = time.Time{}
	if a.Err != nil { // nothing was sent
		m.pauseDue(now)
		d.queue = nil
		return
	}
	if a.Started > 0 {
		m.inherited.noted(call[0].Seq, a.Started)
		if deaths, kills := m.inherited.kills(call[0].Seq); kills {
			m.deadLetter(&call[0], deaths)
			return
		}
	}
	msgs := make([]postrider.Message, len(call))
	passed, keyless := 0, 0
	failing := make(map[string]bool) // keys
	for i := range call {
		msgs[i] = call[i].Message
		if err := answer(a.Errs, i); err == nil {
			passed++
			if len(m.deferrals.wanted) > 0 {
				m.deferrals.sent[msgs[i].ID] = true
			}
		} else if !errors.Is(err, postrider.ErrNotTried) {
			m.names.watch(m.names.nameOf(&msgs[i])).fail(&msgs[i], now)
			if key := msgs[i].OrderKey(); key != "" {
				failing[key] = true
			} else {
				keyless++
			}
		}
	}
	few := len(failing)+keyless <= fewKeys
	m.names.note(msgs, a.Errs, passed)
	m.memory.note(msgs, a.Errs, now)
	m.Count.Published += int64(passed)
	m.Count.Failed += int64(len(call) - passed)
	m.Count.Retried += int64(len(call))

	stuck := make(map[string]bool) // keys of which nothing more may be sent now
	var outage error
	some := false // the outcome of some message is known
	for i := range call {
		c, concluded, away := m.conclude(&call[i], answer(a.Errs, i), passed, few, stuck, now)
		outage = cmp.Or(outage, away)
		if concluded {
			if i < len(a.Unsure) {
				c.Sent = a.Unsure[i]
			}
			d.done = append(d.done, c)
			some = true
		}
		m.leave(call[i].Seq, !concluded && i < len(a.Unsure) && !a.Unsure[i].IsZero(), began)
	}
	if some {
		d.begun.done = earlier(d.begun.done, began)
	}
	d.queue = slices.DeleteFunc(d.queue, func(r feeds.Deferred) bool { return r.OrderKey() != "" && stuck[r.OrderKey()] })
	if some {
		d.failures = 0
		return
	}
	if outage != nil {
		m.names.addProblem("", outage)
	}
	if !a.Alone || len(d.queue) == 0 { // a single message says nothing about the others
		d.queue = nil
		m.pauseDue(now)
	}
}

// leave records whether a message may have arrived although no attempt at it is concluded.
func (m *Machine) leave(seq int64, unknown bool, began time.Time) {
	d := &m.due
	switch {
	case unknown:
		if d.unknown == nil {
			d.unknown = make(map[int64]bool)
		}
		d.unknown[seq] = true
		d.begun.unknown = earlier(d.begun.unknown, began)
	case len(d.unknown) > 0:
		if delete(d.unknown, seq); len(d.unknown) == 0 {
			d.begun.unknown = time.Time{}
		}
	}
}

// conclude decides what the answer to a call means for one of its deferred messages. few says
// whether the call failed for few keys only. The result is either a conclusion to record (ok), or
// nothing; away is then the error if the destination seems to be down.
func (m *Machine) conclude(d *feeds.Deferred, err error, passed int, few bool, stuck map[string]bool, now time.Time) (c feeds.Conclusion, ok bool, away error) {
	c = feeds.Conclusion{Shard: d.Shard, Seq: d.Seq, Status: feeds.StatusRetry, Attempts: d.Attempts}
	key := d.OrderKey()
	if err == nil {
		c.Delivered = true
		delete(m.due.seen, d.Seq)
		if d.Status == feeds.StatusHeld || d.LastError != "" {
			m.names.resolveReported(m.names.nameOf(&d.Message))
		}
		return c, true, nil
	}
	behind := d.Blocking && stuck[key] // an earlier message of its key failed
	stuck[key] = stuck[key] || d.Blocking
	if behind || errors.Is(err, postrider.ErrNotTried) {
		return c, false, nil
	}
	c.Cause = err.Error()
	name := m.names.nameOf(&d.Message)
	known := m.names.watch(name)
	probe := known.held && d.Status == feeds.StatusHeld
	e := evidence{tries: ownTries, others: passed > 0, held: known.held && !probe}
	since := postrider.ScopeOf(err) != postrider.ScopeDestination && m.due.blame(d.Seq, known.passed, m.names.calls)
	e.same = since || passed > 0 && known.passed == m.names.calls
	v := classify(err, e)
	if v == stays && (RetryAfter(err) > 0 || few && !m.failing) { // nothing indicates an outage
		v = waits
		scope := postrider.ScopeOf(err)
		down := scope == postrider.ScopeName && (known.several || d.Status == feeds.StatusHeld)
		switch {
		case down && RetryAfter(err) == 0:
			v = holds
		case d.Attempts > 0 && !down && scope != postrider.ScopeDestination:
			v = counts // it has failed by itself before
		}
	}
	switch {
	case v == counts && !probe:
		m.Count.Refused++
		c.Attempts++
		c.Overtaken = d.Blocking && !m.cfg.Strict
		c.Status, c.Delay = m.cfg.Retry.decide(c.Attempts, now.Sub(d.DeferredAt), err)
		if c.Status == feeds.StatusDead {
			m.Count.Dead++
			m.tell(Told{Died, &d.Message, c.Attempts, err})
		}
		return c, true, nil
	case probe, v == holds && m.names.hold(name, now, &m.cfg.Retry):
		m.names.addProblem(name, err)
		if probe {
			if v == counts {
				known.failures = 0 // this says little about the others: probe with the next one soon
			}
			m.names.hold(name, now, &m.cfg.Retry)
			known.probed = d.Seq
		}
		m.sweeping = true
		c.Status, c.Name = feeds.StatusHeld, name
		return c, d.Status != feeds.StatusHeld, nil
	case v == stays:
		return c, false, err
	default:
		m.names.addProblem(name, err)
		if m.cfg.Retry.old(now.Sub(d.DeferredAt)) {
			m.Count.Dead++
			m.tell(Told{Died, &d.Message, c.Attempts, err})
			c.Status, c.Overtaken = feeds.StatusDead, d.Blocking && !m.cfg.Strict
			return c, true, nil
		}
		c.Delay = m.cfg.Retry.waiting(now.Sub(d.DeferredAt), err)
		return c, true, nil
	}
}

// deadLetter concludes that a message crashes relays. If an operator retries it, it is sent
// nevertheless.
func (m *Machine) deadLetter(d *feeds.Deferred, deaths int) {
	err := suspectError(deaths)
	c := feeds.Conclusion{Shard: d.Shard, Seq: d.Seq, Status: feeds.StatusDead, Attempts: d.Attempts + deaths, Cause: err.Error()}
	m.Count.Dead++
	m.tell(Told{Died, &d.Message, c.Attempts, err})
	m.due.done = append(m.due.done, c)
	m.inherited.begun[d.Seq] = 0
	m.due.queue = slices.DeleteFunc(m.due.queue, func(r feeds.Deferred) bool { return d.Blocking && r.OrderKey() == d.OrderKey() })
}

func (m *Machine) pauseDue(now time.Time) {
	m.due.failures++
	m.due.next = now.Add(m.cfg.Retry.after(m.due.failures))
}

// nextConclusion returns the conclusions to record in the store now.
func (m *Machine) nextConclusion(now time.Time) []feeds.Conclusion {
	d := &m.due
	if len(d.done) == 0 || d.recording > 0 || now.Before(d.next) {
		return nil
	}
	d.recording = len(d.done)
	d.begun.recording, d.begun.done = d.begun.done, time.Time{}
	return d.done[:d.recording:d.recording]
}

// Concluded processes the answer to a Conclude call: the keys that have no deferred messages any
// more, or an error.
func (m *Machine) Concluded(free []string, err error, now time.Time) {
	d := &m.due
	n := d.recording
	d.recording = 0
	began := d.begun.recording
	d.begun.recording = time.Time{}
	if err != nil {
		d.begun.done = earlier(d.begun.done, began)
		m.pauseDue(now)
		m.tell(Told{Event: CannotDefer, Err: err})
		return
	}
	d.failures = 0
	d.done = append(d.done[:0:0], d.done[n:]...)
	m.deferrals.free(free)
}

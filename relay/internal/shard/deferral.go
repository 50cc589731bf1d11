package shard

import (
	"errors"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// want marks a message of the window to be deferred.
func (m *Machine) want(pos int, key uint64, d feeds.Deferral) {
	m.window.beginDefer(pos)
	d.Batch, d.Index = m.window.place(pos)
	m.deferrals.wanted = append(m.deferrals.wanted, deferral{pos: pos, key: key, Deferral: d})
	if key == 0 {
		return
	}
	if m.deferrals.leaving == nil {
		m.deferrals.leaving = make(map[uint64]bool)
	}
	m.deferrals.leaving[key] = true
}

// wantKey is like want for a message and all later ones of its key, unless these may overtake it
// because it failed by itself and order is not strict.
func (m *Machine) wantKey(pos int, d feeds.Deferral) {
	m.window.track()
	key := m.window.order.at(pos).key
	d.Blocking = key != 0 && (m.cfg.Strict || d.Attempts == 0)
	if !d.Blocking {
		m.want(pos, 0, d)
		return
	}
	behind := m.window.order.behind(pos)
	m.want(pos, key, d)
	for _, p := range behind {
		m.want(p, key, feeds.Deferral{Status: feeds.StatusWaiting, Blocking: true})
	}
}

// refuse defers a message that failed by itself, or makes it a dead letter.
func (m *Machine) refuse(pos, attempts int, err error) {
	d := feeds.Deferral{Attempts: attempts, Cause: err.Error()}
	d.Status, d.Delay = m.cfg.Retry.decide(attempts, 0, err)
	event := Refused
	if d.Status == feeds.StatusDead {
		m.Count.Dead++
		event = Died
	}
	m.tell(Told{event, m.window.message(pos), attempts, err})
	m.wantKey(pos, d)
}

// sort handles the messages of a new batch that are not sent in the order of the log. Scheduled
// messages and those of blocked keys are deferred. Canaries, messages that the destination does not
// get, excluded ones, those that are known to have arrived, and those that a former owner has
// deferred count as confirmed. The batch is in the window, at position at.
func (m *Machine) sort(b *feeds.Batch, at int) {
	d := &m.deferrals
	for i := range b.Messages {
		msg, pos := &b.Messages[i], at+i
		_, already := slices.BinarySearch(b.Deferred, i)
		switch {
		case msg.Type == feeds.CanaryType || d.excluded[msg.ID] || m.cfg.Sends != nil && !m.cfg.Sends(msg):
			m.window.leaveOut(pos)
			continue
		case m.memory.arrived[msg.ID] || already:
			delete(m.memory.arrived, msg.ID)
			m.window.beginDefer(pos)
			m.window.endDefer(pos)
			if key := hashKey(msg); already && key != 0 && msg.DeliverAfter.IsZero() {
				d.blocked[key] = true // perhaps deferred after the blocked keys were loaded
			}
			continue
		case !msg.DeliverAfter.IsZero():
			m.want(pos, 0, feeds.Deferral{Status: feeds.StatusScheduled})
			continue
		}
		if len(d.blocked)+len(d.leaving) > 0 {
			if key := hashKey(msg); d.blocked[key] || d.leaving[key] {
				m.want(pos, key, feeds.Deferral{Status: feeds.StatusWaiting, Blocking: true})
			}
		}
	}
}

// sweep defers the messages of held names, unless an earlier message of their key is still in the
// window: that must be sent first. It reports whether any such messages are left.
func (m *Machine) sweep() (left bool) {
	w := &m.window
	w.track()
	earlier := make(map[uint64]bool) // keys
	for pos := w.first; pos < w.end; pos++ {
		if !w.order.isOpen(pos) {
			continue
		}
		key := w.order.at(pos).key
		name, held := m.names.isHeld(w.message(pos))
		switch {
		case held && !earlier[key]:
			m.wantKey(pos, feeds.Deferral{Status: feeds.StatusHeld, Name: name})
		case held:
			left = true
		default:
			earlier[key] = key != 0
		}
	}
	return left
}

// fillGaps defers all messages in front of a confirmed one, so that a stop repeats nothing.
func (m *Machine) fillGaps() {
	for _, pos := range m.window.gaps() {
		if m.window.order.isOpen(pos) { // it may have left behind an earlier one of its key
			m.wantKey(pos, feeds.Deferral{Status: feeds.StatusRetry})
		}
	}
}

// nextDeferral returns the messages that the store must defer now.
func (m *Machine) nextDeferral(now time.Time) []feeds.Deferral {
	d := &m.deferrals
	if d.busy > 0 || len(d.wanted) == 0 || now.Before(d.next) {
		return nil
	}
	d.busy = min(len(d.wanted), max(d.limit, 1))
	msgs := make([]feeds.Deferral, d.busy)
	for i := range msgs {
		msgs[i] = d.wanted[i].request()
	}
	return msgs
}

// lostContent records that a message was deferred without its content. Later messages of its key
// continue even if order is strict, because the store does not know the key.
func (m *Machine) lostContent(w *deferral) {
	if w.Status != feeds.StatusDead {
		m.Count.Dead++
	}
	m.tell(Told{Died, &w.Batch.Messages[w.Index], w.Attempts, errors.New(w.request().Cause)})
}

// Deferred processes the answer to a Defer call.
func (m *Machine) Deferred(err error, now time.Time) {
	d := &m.deferrals
	n := d.busy
	d.busy = 0
	if err != nil {
		d.failures++
		d.next = now.Add(m.cfg.Retry.after(d.failures))
		d.limit = max(n/2, 1)
		switch {
		case n > 1:
		case d.refuse(err, now, m.lease.renewed):
			d.next = now
		default:
			d.postpone()
		}
		m.tell(Told{Event: CannotDefer, Err: err})
		return
	}
	if d.failures > 0 {
		m.tell(Told{Event: CanDefer})
	}
	d.failures = 0
	d.limit = min(2*max(d.limit, 1), m.cfg.BatchSize)
	d.deferred += n
	m.Count.Deferred += int64(n)
	if m.window.oldest().IsZero() { // behind an open message, they are read again by the next owner
		m.window.sent = now
	}
	for _, w := range d.wanted[:n] {
		m.window.endDefer(w.pos)
		if w.bare {
			m.lostContent(&w)
		} else if w.key != 0 {
			d.blocked[w.key] = true
		}
	}
	d.wanted = append(d.wanted[:0], d.wanted[n:]...)
	d.note()
	m.advance()
}

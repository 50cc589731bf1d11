package shard

import (
	"time"

	"github.com/postrider/postrider"
)

// Exclude takes in all messages of the log that an operator has decided about before the shard came to them. They are not sent
// any more, and leave the window as if they were confirmed.
func (m *Machine) Exclude(ids []postrider.ID) {
	d := &m.deferrals
	before := d.excluded
	d.excluded = make(map[postrider.ID]bool, len(ids))
	for _, id := range ids {
		d.excluded[id] = true
		d.passes = d.passes || !before[id]
	}
}

// passOver has excluded messages leave the window. No call of it is under way.
func (m *Machine) passOver() {
	m.deferrals.passes = false
	w := &m.window
	for i := range w.runs {
		r := &w.runs[i]
		for j := range r.Messages {
			pos := r.at + j
			if pos < w.first || !m.deferrals.excluded[r.Messages[j].ID] {
				continue
			}
			w.track()
			if w.order.isOpen(pos) {
				w.beginDefer(pos)
				w.endDefer(pos)
			}
		}
	}
	m.advance()
}

// spare leaves out of what is to be deferred what is excluded. No call of the store is under way.
func (m *Machine) spare() {
	if len(m.deferrals.excluded) == 0 {
		return
	}
	d := &m.deferrals
	kept := d.wanted[:0]
	for _, w := range d.wanted {
		if m.deferrals.excluded[w.Batch.Messages[w.Index].ID] {
			m.window.endDefer(w.pos)
		} else {
			kept = append(kept, w)
		}
	}
	if len(kept) == len(d.wanted) {
		return
	}
	clear(d.wanted[len(kept):])
	d.wanted = kept
	d.note()
	if len(kept) == 0 && d.failures > 0 { // it was what the store refused
		d.failures, d.next = 0, time.Time{}
		m.tell(Told{Event: CanDefer})
	}
	m.advance()
}

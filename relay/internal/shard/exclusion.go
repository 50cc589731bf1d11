package shard

import (
	"time"

	"github.com/postrider/postrider"
)

// Exclude sets the messages that an operator has handled, for instance discarded, before the shard
// reached them. The machine does not send them; they leave the window as if confirmed.
func (m *Machine) Exclude(ids []postrider.ID) {
	d := &m.deferrals
	before := d.excluded
	d.excluded = make(map[postrider.ID]bool, len(ids))
	for _, id := range ids {
		d.excluded[id] = true
		d.hasExcluded = d.hasExcluded || !before[id]
	}
}

// skipExcluded removes excluded messages from the window. No call for the window may be in flight.
func (m *Machine) skipExcluded() {
	m.deferrals.hasExcluded = false
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
				w.leaveOut(pos)
			}
		}
	}
	m.advance()
}

// dropExcluded removes excluded messages from those to be deferred, and those that have been sent: if
// they were deferred again, they would come twice. No call of the store may be in flight.
func (m *Machine) dropExcluded() {
	d := &m.deferrals
	if len(d.excluded)+len(d.sent) == 0 {
		return
	}
	kept := d.wanted[:0]
	for _, w := range d.wanted {
		if id := w.Batch.Messages[w.Index].ID; d.excluded[id] || d.sent[id] {
			m.window.endDefer(w.pos)
		} else {
			kept = append(kept, w)
		}
	}
	clear(d.sent)
	if len(kept) == len(d.wanted) {
		return
	}
	clear(d.wanted[len(kept):])
	d.wanted = kept
	d.note()
	if len(kept) == 0 && d.failures > 0 { // the store had refused these
		d.failures, d.next = 0, time.Time{}
		m.tell(Told{Event: CanDefer})
	}
	m.advance()
}

package shard

import (
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// window holds the messages that were read and cannot be settled yet: all from the first
// unconfirmed one on. A position counts from the first message ever read. At most one call is in
// flight.
type window struct {
	keepsOrder bool

	runs   []run // the batches with messages of the window
	first  int   // the first unconfirmed message; equal to end if there is none
	end    int   // one past the last message
	last   int   // the last confirmed message; meaningful if it is behind first
	passed int   // first at the last advance
	bytes  int   // of runs
	full   bool  // nothing can be read until messages leave

	// With a publisher that keeps order and without failures, all messages from first on are fresh,
	// and the window tracks no single messages.
	tracked bool
	order   order

	flying   bool  // a call is in flight
	picked   []int // its messages; if not tracked, the size messages from first on
	size     int   // number of messages in the call
	repeated int   // number of them that were sent before

	urgent []int // messages with a priority; only if tracked

	sent time.Time // when the oldest attempt from first on began, if there is one

	scratch []postrider.Message // buffer for calls that are not part of one batch
	used    int                 // number of messages in scratch
}

// run is a batch and the position of its first message.
type run struct {
	*feeds.Batch
	at    int
	bytes int
}

func newWindow(keepsOrder bool) window {
	return window{keepsOrder: keepsOrder, last: -1, tracked: !keepsOrder, order: order{keepsOrder: keepsOrder}}
}

// overhead is the approximate size of a message in memory besides its texts.
const overhead = 256

// Size returns the approximate size of a batch in memory.
func Size(b *feeds.Batch) (size int) {
	for i := range b.Messages {
		size += sizeOf(&b.Messages[i])
	}
	return size
}

func sizeOf(m *postrider.Message) int {
	size := overhead + len(m.Payload)
	for name, value := range m.Headers {
		size += len(name) + len(value)
	}
	return size
}

func (w *window) empty() bool { return w.first == w.end }

// add appends a batch that is not empty, with its size.
func (w *window) add(b *feeds.Batch, bytes int) {
	from := w.end
	w.runs = append(w.runs, run{b, from, bytes})
	w.end += len(b.Messages)
	w.bytes += bytes
	switch {
	case w.tracked:
		w.enter(from)
	case slices.ContainsFunc(b.Messages, func(m postrider.Message) bool { return m.Priority > 0 }):
		w.track()
	}
}

// track starts tracking single messages.
func (w *window) track() {
	if w.tracked {
		return
	}
	w.tracked = true
	w.enter(w.first)
	w.picked = w.picked[:0]
	if w.flying {
		for i := range w.size {
			w.picked = append(w.picked, w.first+i)
		}
	}
}

// enter adds the messages from a position on to the order.
func (w *window) enter(from int) {
	if from == w.end {
		return
	}
	w.order.reserve(w.first, from, w.end)
	for i := w.find(from, len(w.runs)-1); i < len(w.runs); i++ {
		r := w.runs[i]
		for j := max(from-r.at, 0); j < len(r.Messages); j++ {
			m := &r.Messages[j]
			key := hashKey(m)
			if !m.DeliverAfter.IsZero() {
				key = 0 // scheduled messages have no order
			}
			w.order.enter(r.at+j, key)
			if m.Priority > 0 {
				w.urgent = append(w.urgent, r.at+j)
			}
		}
	}
}

// beginDefer removes a message that is to be deferred from the order.
func (w *window) beginDefer(pos int) {
	w.track()
	if w.oldest().IsZero() {
		w.sent = time.Time{}
	}
	w.order.beginDefer(pos)
}

// endDefer records that a message was deferred. It counts as confirmed.
func (w *window) endDefer(pos int) {
	w.order.endDefer(pos)
	w.last = max(w.last, pos)
	w.skip()
}

// leaveOut records that an open message need not be sent. It counts as confirmed, and to read it
// again repeats nothing.
func (w *window) leaveOut(pos int) {
	w.beginDefer(pos)
	w.order.endDefer(pos)
	w.skip()
}

// oldest returns when the oldest attempt to send a message that is neither confirmed nor deferred
// began, or one behind such a message; zero if there is none.
func (w *window) oldest() time.Time {
	if !w.flying && w.last < w.first && (!w.tracked || w.order.failed+w.order.deferring == 0) {
		return time.Time{}
	}
	return w.sent
}

// skip moves first past confirmed messages.
func (w *window) skip() {
	for w.first < w.end && w.order.at(w.first).state == confirmed {
		w.first++
		w.order.beyond--
	}
}

// gaps returns the open messages in front of a confirmed one. If the relay stopped now, the
// confirmed one would be sent again.
func (w *window) gaps() []int {
	if !w.tracked || w.last < w.first {
		return nil
	}
	var all []int
	for pos := w.first; pos < w.last; pos++ {
		if w.order.isOpen(pos) {
			all = append(all, pos)
		}
	}
	return all
}

// find returns the index of the run that contains a position. It tries guess first.
func (w *window) find(pos, guess int) int {
	if r := w.runs[guess]; pos >= r.at && pos < r.at+len(r.Messages) {
		return guess
	}
	return sort.Search(len(w.runs), func(i int) bool { return w.runs[i].at > pos }) - 1
}

// place returns the batch of a message and its index in it.
func (w *window) place(pos int) (*feeds.Batch, int) {
	r := &w.runs[w.find(pos, 0)]
	return r.Batch, pos - r.at
}

// message returns the message at a position.
func (w *window) message(pos int) *postrider.Message {
	b, i := w.place(pos)
	return &b.Messages[i]
}

var errNoAnswer = errors.New("relay: the publisher returned fewer errors than messages")

// answer returns the error of message i from the result of Publish.
func answer(errs []error, i int) error {
	if len(errs) == 0 {
		return nil
	}
	if i >= len(errs) {
		return errNoAnswer
	}
	return errs[i]
}

// record applies the result of the call in flight. If any message failed, picked holds all messages
// of the call afterwards.
func (w *window) record(errs []error) (passed, failures int) {
	if len(errs) > 0 {
		for i := range w.size {
			if answer(errs, i) != nil {
				failures++
			}
		}
	}
	if !w.tracked && failures == 0 {
		w.flying = false
		w.first += w.size
		return w.size, 0
	}
	w.track()
	w.flying = false
	for i, pos := range w.picked {
		if answer(errs, i) == nil {
			w.order.confirm(pos)
			w.last = max(w.last, pos)
		} else {
			w.order.fail(pos)
		}
	}
	w.skip()
	return w.size - failures, failures
}

// advance drops the messages before first and returns the growth of the confirmed prefix: n
// messages, up to and including the first done of batch. It invalidates the messages of the last
// call.
func (w *window) advance() (n int, batch *feeds.Batch, done int) {
	n, w.passed = w.first-w.passed, w.first
	if n == 0 {
		return 0, nil, 0
	}
	for len(w.runs) > 0 && w.first > w.runs[0].at {
		r := &w.runs[0]
		batch, done = r.Batch, min(w.first-r.at, len(r.Messages))
		if done < len(r.Messages) {
			break
		}
		w.bytes -= r.bytes
		*r = run{}
		w.runs = w.runs[1:]
	}
	if w.empty() && w.used > 0 { // an idle shard must not keep messages alive
		clear(w.scratch[:w.used])
		w.used = 0
	}
	return n, batch, done
}

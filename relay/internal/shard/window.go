package shard

import (
	"errors"
	"slices"
	"sort"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// window is what was read and cannot be settled yet: the messages from the first unconfirmed one on. They are named by their
// position, which counts from the first message ever read. One call may be under way.
type window struct {
	keepsOrder bool

	runs   []run // the batches with messages of the window
	first  int   // the first unconfirmed message; equal to end if there is none
	end    int   // behind the last message
	last   int   // the last confirmed message, where that is behind first
	passed int   // where first was when the window last advanced
	bytes  int   // of runs
	full   bool  // nothing more can be read until something leaves

	// A publisher that keeps order and has no failures needs no order: then all messages from first on are fresh, and
	// nothing is noted by message.
	tracked bool
	order   order

	flying   bool  // a call is under way
	picked   []int // its messages; if not tracked, those that follow first instead
	size     int   // how many they are
	repeated int   // how many of them have been sent before

	urgent []int // messages with a priority, where anything is noted by message

	scratch []postrider.Message // memory for calls that are not a part of one batch
	used    int                 // how much of it holds messages
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

// overhead is about what a message takes in memory besides its texts.
const overhead = 256

// Size is about what a batch takes in memory.
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

// add appends a batch that is not empty, of so many bytes.
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

// track starts the bookkeeping by message.
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

// enter gives the messages from a position on to the order.
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
				key = 0 // it is in no order
			}
			w.order.enter(r.at+j, key)
			if m.Priority > 0 {
				w.urgent = append(w.urgent, r.at+j)
			}
		}
	}
}

// beginDefer takes a message out of the order that is to be deferred.
func (w *window) beginDefer(pos int) {
	w.track()
	w.order.beginDefer(pos)
}

// endDefer notes that a message has been deferred. It counts as confirmed.
func (w *window) endDefer(pos int) {
	w.order.endDefer(pos)
	w.last = max(w.last, pos)
	w.skip()
}

// skip moves first behind what is confirmed.
func (w *window) skip() {
	for w.first < w.end && w.order.at(w.first).state == confirmed {
		w.first++
		w.order.beyond--
	}
}

// gaps returns the messages that are still to be confirmed before one that is: while they are, a stop would repeat that one.
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

// find returns the index of the run with a message. The guess is tried before others.
func (w *window) find(pos, guess int) int {
	if r := w.runs[guess]; pos >= r.at && pos < r.at+len(r.Messages) {
		return guess
	}
	return sort.Search(len(w.runs), func(i int) bool { return w.runs[i].at > pos }) - 1
}

// place returns the batch that a message came in, and its index there.
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

// answer returns what a Publish has returned for message i of the call.
func answer(errs []error, i int) error {
	if len(errs) == 0 {
		return nil
	}
	if i >= len(errs) {
		return errNoAnswer
	}
	return errs[i]
}

// record notes which messages of the call were confirmed, and that the others have failed. If any have, picked names all
// messages of the call then.
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

// advance lets go of the messages before first and returns what that adds to the confirmed prefix: n messages, up to
// and including the first done of batch. The messages of the last call are void then.
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
	if w.empty() && w.used > 0 { // an idle shard keeps no messages alive
		clear(w.scratch[:w.used])
		w.used = 0
	}
	return n, batch, done
}

package relay

import (
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/postrider/postrider"
)

// window is what a lane has been given and cannot settle yet: the messages from the first unconfirmed one on. They are
// named by their position, which counts from the lane's first message. It belongs to the lane's goroutine.
type window struct {
	keepsOrder bool
	limit      int // messages in a call

	runs   []run // the batches with messages of the window
	first  int   // the first unconfirmed message; equal to end if there is none
	end    int   // behind the last message
	last   int   // the last confirmed message, where that is behind first; one that was set aside may have arrived since
	passed int   // where first was when the window last advanced

	// A publisher that keeps order and has no failures needs no order: then all messages from first on are fresh, and
	// nothing is noted by message.
	tracked bool
	order   order

	picked   []int // the messages of the call; if not tracked, those that follow first instead
	size     int   // how many they are
	repeated int   // how many of them have been sent before

	urgent []int // messages with a priority, where anything is noted by message

	scratch []postrider.Message // memory for calls that are not a part of one batch
	used    int                 // how much of it holds messages
}

// run is a batch and the position of its first message.
type run struct {
	*postrider.Batch
	at int
}

func newWindow(keepsOrder bool, limit int) window {
	return window{
		keepsOrder: keepsOrder,
		limit:      limit,
		last:       -1,
		tracked:    !keepsOrder,
		order:      order{keepsOrder: keepsOrder},
	}
}

func (w *window) empty() bool { return w.first == w.end }

// add appends a batch that is not empty.
func (w *window) add(b *postrider.Batch) {
	from := w.end
	w.runs = append(w.runs, run{b, from})
	w.end += len(b.Messages)
	if !w.tracked && slices.ContainsFunc(b.Messages, func(m postrider.Message) bool { return m.Priority > 0 }) {
		w.tracked, from = true, w.first
	}
	if w.tracked {
		w.enter(from)
	}
}

// setAside takes a message out of the order, to be set aside.
func (w *window) setAside(pos int) {
	w.follow()
	w.order.setAside(pos)
}

// release notes that a message has been set aside. It counts as confirmed.
func (w *window) release(pos int) {
	w.order.released(pos)
	w.last = max(w.last, pos)
	w.skip()
}

// skip moves first behind what is confirmed.
func (w *window) skip() {
	for w.first < w.end && w.order.at(w.first).state == confirmedState {
		w.first++
		w.order.beyond--
	}
}

// follow starts the bookkeeping by message.
func (w *window) follow() {
	if !w.tracked {
		w.tracked = true
		w.enter(w.first)
	}
}

// fewFail reports whether what fails, of the call and besides, are messages of no more than n keys.
func (w *window) fewFail(n int) bool {
	seen := make(map[uint64]bool)
	loose := 0
	note := func(pos int) bool {
		if key := w.order.at(pos).key; key == 0 {
			loose++
		} else {
			seen[key] = true
		}
		return len(seen)+loose > n
	}
	return !slices.ContainsFunc(w.picked, note) && !slices.ContainsFunc(w.order.held, func(h held) bool { return note(h.pos) })
}

// only returns the message of a call that has one.
func (w *window) only() int {
	if w.tracked {
		return w.picked[0]
	}
	return w.first
}

// enter gives the messages from a position on to the order.
func (w *window) enter(from int) {
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

// find returns the index of the run with a message. The guess is tried before others.
func (w *window) find(pos, guess int) int {
	if r := w.runs[guess]; pos >= r.at && pos < r.at+len(r.Messages) {
		return guess
	}
	return sort.Search(len(w.runs), func(i int) bool { return w.runs[i].at > pos }) - 1
}

// place returns the batch that a message came in, and its index there.
func (w *window) place(pos int) (*postrider.Batch, int) {
	r := &w.runs[w.find(pos, 0)]
	return r.Batch, pos - r.at
}

// pick chooses the messages of the next call, oldest first, from those before end; if it is wary, only from those that
// have the fewest faults. If there are none, it returns when the first held one is due; that is the zero time if the
// window is empty. It may be called again before the call is made.
func (w *window) pick(now time.Time, end int, wary bool) (call []postrider.Message, due time.Time) {
	if w.tracked && w.keepsOrder && w.order.failed+w.order.beyond+w.order.asides+len(w.urgent) == 0 {
		w.tracked = false
		w.order.reset()
	}
	w.repeated = 0
	if !w.tracked {
		w.size = min(w.limit, end-w.first)
		return w.slice(w.first, w.size), time.Time{}
	}
	w.order.release(now)
	hasty := false // messages overtake
	if wary {
		w.picked = w.order.mildest(w.order.choose(w.picked[:0], end-w.first, w.first, end), w.limit)
	} else if w.picked = w.overtake(w.picked[:0], end); len(w.picked) > 0 {
		hasty = true
		w.picked = w.order.chooseOthers(w.picked, w.limit, w.first, end)
	} else {
		w.picked = w.order.choose(w.picked, w.limit, w.first, end)
	}
	w.size = len(w.picked)
	if w.size == 0 {
		if len(w.order.held) > 0 {
			due = w.order.due
		}
		return nil, due
	}
	for _, pos := range w.picked {
		if w.order.at(pos).state != freshState {
			w.repeated++
		}
	}
	if from := w.picked[0]; !hasty && w.picked[w.size-1]-from == w.size-1 {
		return w.slice(from, w.size), time.Time{}
	}
	return w.gather(w.picked), time.Time{}
}

// slice returns n messages that follow each other.
func (w *window) slice(from, n int) []postrider.Message {
	if n == 0 {
		return nil
	}
	i := w.find(from, 0)
	msgs := w.runs[i].Messages[from-w.runs[i].at:]
	if len(msgs) >= n {
		return msgs[:n:n]
	}
	call := append(w.scratch[:0], msgs...)
	for i++; len(call) < n; i++ {
		msgs = w.runs[i].Messages
		call = append(call, msgs[:min(n-len(call), len(msgs))]...)
	}
	return w.keep(call)
}

func (w *window) gather(picked []int) []postrider.Message {
	call := w.scratch[:0]
	i := 0
	for _, pos := range picked {
		if i+1 < len(w.runs) && w.runs[i+1].at == pos {
			i++
		} else {
			i = w.find(pos, i)
		}
		call = append(call, w.runs[i].Messages[pos-w.runs[i].at])
	}
	return w.keep(call)
}

func (w *window) keep(call []postrider.Message) []postrider.Message {
	w.scratch = call
	w.used = max(w.used, len(call))
	return call
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

// record notes which messages of the call were confirmed. The others are to be held before the next call is picked;
// picked names all messages of the call then.
func (w *window) record(errs []error) (confirmed, failed int) {
	if len(errs) > 0 {
		for i := range w.size {
			if answer(errs, i) != nil {
				failed++
			}
		}
	}
	if !w.tracked {
		if failed == 0 {
			w.first += w.size
			return w.size, 0
		}
		w.track()
	}
	for i, pos := range w.picked {
		if answer(errs, i) == nil {
			w.order.confirm(pos)
			w.last = max(w.last, pos)
		}
	}
	w.skip()
	return w.size - failed, failed
}

// track starts the bookkeeping by message in the middle of a call.
func (w *window) track() {
	if w.tracked {
		return
	}
	w.follow()
	w.picked = w.picked[:0]
	for i := range w.size {
		w.picked = append(w.picked, w.first+i)
	}
}

// advance lets go of the messages before first and returns what that adds to the confirmed prefix: n messages, up to
// and including the first done of batch. The messages of the last call are void then.
func (w *window) advance() (n int, batch *postrider.Batch, done int) {
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
		*r = run{}
		w.runs = w.runs[1:]
	}
	if w.empty() && w.used > 0 { // an idle lane keeps no messages alive
		clear(w.scratch[:w.used])
		w.used = 0
	}
	return n, batch, done
}

// seam returns where a lane that ends may end: before that position, nothing must be left unconfirmed, lest confirmed
// messages are sent again. That is first if nothing is to be done. There is no hope for what stands behind a message that
// is held for longer than patience.
func (w *window) seam(patience time.Time) int {
	if !w.tracked || w.last < w.first {
		return w.first
	}
	o, pos := &w.order, w.last
	for _, h := range o.held {
		if h.due.After(patience) {
			pos = min(pos, h.pos)
		}
	}
	for pos > w.first && o.at(pos).state != confirmedState {
		pos--
	}
	return pos
}

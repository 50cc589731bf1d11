package relay

import (
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

type state uint8

const (
	freshState state = iota
	failedState
	asideState // it is to be set aside: nothing in the window waits for it
	confirmedState
)

// order knows which messages of a window may be sent. A message that failed is held for a while, and holds back the
// later ones of its key; with a publisher that does not keep order, every unconfirmed message does.
//
// A window of one hot key means a call for each message, so nothing here looks at the whole window for a call: what may
// be sent is a set of bits, and the messages of a key are linked, so that the next can be found when one is confirmed.
type order struct {
	keepsOrder bool

	slots []slot   // by position, a ring whose length is a power of two
	ready []uint64 // a bit for each slot: the message may be sent
	keys  map[uint64]queue
	seen  map[uint64]bool // of mildest

	held []held
	due  time.Time // of the first of held

	failed int // unconfirmed messages in failedState
	beyond int // confirmed messages behind an unconfirmed one
	asides int // messages in asideState
}

// slot is what is known of one message.
type slot struct {
	key    uint64
	next   uint32 // how far behind it the next message of its key is; 0 if there is none
	state  state
	held   bool
	faults uint16 // failures that may have been the message's own fault
	guilt  uint16 // those of them that were, as others have arrived since the one before
	seen   uint32 // how many calls had confirmed anything at its last failure
}

// queue is the unconfirmed messages of a key.
type queue struct {
	tail int // the last message; it may be confirmed if the publisher has broken its word
	left int // how many; only counted if the publisher keeps order
	bar  int // one more than the first held message, behind which none may be sent; 0 if there is none. As left.
}

type held struct {
	pos int
	due time.Time
}

func (o *order) at(pos int) *slot { return &o.slots[pos&(len(o.slots)-1)] }

func (o *order) set(pos int)   { o.ready[pos>>6&(len(o.ready)-1)] |= 1 << (pos & 63) }
func (o *order) unset(pos int) { o.ready[pos>>6&(len(o.ready)-1)] &^= 1 << (pos & 63) }

func (o *order) isReady(pos int) bool { return o.ready[pos>>6&(len(o.ready)-1)]>>(pos&63)&1 == 1 }

// reserve makes room for the messages from first to end, of which those before known have entered.
func (o *order) reserve(first, known, end int) {
	if o.keys == nil {
		o.keys = make(map[uint64]queue)
	}
	size := max(len(o.slots), 128)
	for size < end-first+64 { // the first and the last word of bits must not be one
		size *= 2
	}
	if size == len(o.slots) {
		return
	}
	old := *o
	o.slots, o.ready = make([]slot, size), make([]uint64, size/64)
	for pos := first; pos < known; pos++ {
		*o.at(pos) = *old.at(pos)
		if old.isReady(pos) {
			o.set(pos)
		}
	}
}

// reset forgets all messages.
func (o *order) reset() {
	clear(o.ready)
	clear(o.keys)
	o.held = o.held[:0]
	o.failed, o.beyond, o.asides = 0, 0, 0
}

// enter adds the message that follows the last one.
func (o *order) enter(pos int, key uint64) {
	*o.at(pos) = slot{key: key}
	if key == 0 {
		o.set(pos)
		return
	}
	q, behind := o.keys[key]
	if behind {
		o.at(q.tail).next = uint32(pos - q.tail)
	}
	if !behind || o.keepsOrder && q.bar == 0 {
		o.set(pos)
	}
	q.tail = pos
	q.left++
	o.keys[key] = q
}

// choose appends up to n of the messages from first to end that may be sent to picked, oldest first.
func (o *order) choose(picked []int, n, first, end int) []int {
	for word := first >> 6; word<<6 < end && n > 0; word++ {
		for set := o.ready[word&(len(o.ready)-1)]; set != 0 && n > 0; set &= set - 1 {
			pos := word<<6 + bits.TrailingZeros64(set)
			if pos >= end {
				return picked
			}
			picked = append(picked, pos)
			n--
		}
	}
	return picked
}

// mildest leaves of messages that may be sent, oldest first, up to n that have the fewest faults. Of a key, what stands
// behind one with more is left out too.
func (o *order) mildest(picked []int, n int) []int {
	least := uint16(math.MaxUint16)
	clear(o.seen)
	for _, pos := range picked {
		if s := o.at(pos); !o.seen[s.key] {
			o.see(s.key)
			least = min(least, s.faults)
		}
	}
	clear(o.seen)
	kept := picked[:0]
	for _, pos := range picked {
		switch s := o.at(pos); {
		case len(kept) == n:
			return kept
		case o.seen[s.key]:
		case s.faults > least:
			o.see(s.key)
		default:
			kept = append(kept, pos)
		}
	}
	return kept
}

// see notes a key, if order matters to it.
func (o *order) see(key uint64) {
	if key == 0 || !o.keepsOrder {
		return // no two of picked are of the key
	}
	if o.seen == nil {
		o.seen = make(map[uint64]bool)
	}
	o.seen[key] = true
}

// confirm takes a message that may be sent out of the order.
func (o *order) confirm(pos int) {
	o.leave(pos, confirmedState)
	o.beyond++
}

// setAside takes a message out of the order that is to be set aside, whether it may be sent or not.
func (o *order) setAside(pos int) {
	if s := o.at(pos); s.held {
		o.held = slices.DeleteFunc(o.held, func(h held) bool { return h.pos == pos })
		for i, h := range o.held {
			if i == 0 || h.due.Before(o.due) {
				o.due = h.due
			}
		}
		o.free(pos)
	}
	o.leave(pos, asideState)
	o.asides++
}

// released notes that a message has been set aside.
func (o *order) released(pos int) {
	o.at(pos).state = confirmedState
	o.asides--
	o.beyond++
}

// behind returns the unconfirmed messages of a message's key that come after it.
func (o *order) behind(pos int) []int {
	var all []int
	for s := o.at(pos); s.next > 0; s = o.at(pos) {
		pos += int(s.next)
		if state := o.at(pos).state; state != confirmedState && state != asideState {
			all = append(all, pos)
		}
	}
	return all
}

// leave takes a message out of the order. Those behind it need not wait for it any more.
func (o *order) leave(pos int, as state) {
	s := o.at(pos)
	if s.state == failedState {
		o.failed--
	}
	s.state = as
	o.unset(pos)
	switch {
	case s.key == 0:
	case o.keepsOrder:
		q := o.keys[s.key]
		if q.left--; q.left > 0 {
			o.keys[s.key] = q
		} else {
			delete(o.keys, s.key)
		}
	case s.next > 0:
		o.set(pos + int(s.next))
	default:
		delete(o.keys, s.key)
	}
}

// hold keeps a message that may be sent, and the later ones of its key, from being sent before it is due.
func (o *order) hold(pos int, due time.Time) {
	s := o.at(pos)
	if s.state != failedState {
		o.failed++
	}
	s.state, s.held = failedState, true
	o.unset(pos)
	if len(o.held) == 0 || due.Before(o.due) {
		o.due = due
	}
	o.held = append(o.held, held{pos, due})
	if !o.keepsOrder || s.key == 0 {
		return
	}
	q := o.keys[s.key]
	if q.bar > 0 && q.bar <= pos {
		return
	}
	for p := pos; o.at(p).next > 0; {
		p += int(o.at(p).next)
		if p+1 == q.bar {
			break
		}
		o.unset(p)
	}
	q.bar = pos + 1
	o.keys[s.key] = q
}

// blame notes a failure that may be the message's own fault. It returns how many there have been, and how many of them
// were beyond doubt: others have arrived since the one before, or with it. arrivals is how many calls have confirmed
// anything.
func (o *order) blame(pos int, arrivals uint32, mixed bool) (faults, guilt int) {
	s := o.at(pos)
	if mixed || s.faults > 0 && s.seen != arrivals {
		s.guilt++
	}
	s.faults, s.seen = min(s.faults, math.MaxUint16-1)+1, arrivals
	return int(s.faults), int(s.guilt)
}

// release lets go of the held messages that are due.
func (o *order) release(now time.Time) {
	if len(o.held) == 0 || o.due.After(now) {
		return
	}
	rest := o.held[:0]
	for _, h := range o.held {
		if !h.due.After(now) {
			o.free(h.pos)
			continue
		}
		if len(rest) == 0 || h.due.Before(o.due) {
			o.due = h.due
		}
		rest = append(rest, h)
	}
	o.held = rest
}

func (o *order) free(pos int) {
	s := o.at(pos)
	s.held = false
	if !o.keepsOrder || s.key == 0 {
		o.set(pos)
		return
	}
	q := o.keys[s.key]
	if q.bar != pos+1 {
		return // an earlier one still holds it back
	}
	q.bar = 0
	for {
		if s.held {
			q.bar = pos + 1
			break
		}
		if s.state != confirmedState && s.state != asideState {
			o.set(pos)
		}
		if s.next == 0 {
			break
		}
		pos += int(s.next)
		s = o.at(pos)
	}
	o.keys[s.key] = q
}

var seed = maphash.MakeSeed()

// hashKey stands for the ordering key without building it. Two keys with one hash are merely treated as one. Messages
// in no order have 0.
func hashKey(m *postrider.Message) uint64 {
	if m.Key == "" && m.AggregateType == "" && m.AggregateID == "" {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(seed)
	if m.Key != "" {
		h.WriteString(m.Key)
	} else {
		h.WriteString(m.AggregateType)
		h.WriteByte('/')
		h.WriteString(m.AggregateID)
	}
	return max(h.Sum64(), 1)
}

// hashText is hashKey of an ordering key.
func hashText(key string) uint64 { return max(maphash.String(seed, key), 1) }

package shard

import (
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/postrider/postrider"
)

type state uint8

const (
	fresh     state = iota
	failed          // it was sent, and is sent again
	deferring       // it leaves the window: nothing there waits for it
	confirmed
)

// order knows which messages of a window may be sent: all that are unconfirmed if the publisher keeps order, and otherwise the
// first of each key.
//
// A window of one hot key means a call for each message, so nothing here looks at the whole window for a call: what may
// be sent is a set of bits, and the messages of a key are linked, so that the next can be found when one is confirmed.
type order struct {
	keepsOrder bool

	slots []slot   // by position, a ring whose length is a power of two
	ready []uint64 // a bit for each slot: the message may be sent
	keys  map[uint64]queue
	seen  map[uint64]bool // of leastTried

	failed    int // unconfirmed messages that were sent
	beyond    int // confirmed messages behind an unconfirmed one
	deferring int
}

// slot is what is known of one message.
type slot struct {
	key   uint64
	next  uint32 // how far behind it the next message of its key is; 0 if there is none
	state state
	tries uint16 // how often it failed, and may have been to blame
	seen  uint32 // how many messages of its name had passed at its last failure
}

// queue is the unconfirmed messages of a key.
type queue struct {
	tail int // the last message; it may be confirmed if the publisher has broken its word
	left int // how many; only counted if the publisher keeps order
}

func (o *order) at(pos int) *slot { return &o.slots[pos&(len(o.slots)-1)] }

func (o *order) set(pos int)   { o.ready[pos>>6&(len(o.ready)-1)] |= 1 << (pos & 63) }
func (o *order) unset(pos int) { o.ready[pos>>6&(len(o.ready)-1)] &^= 1 << (pos & 63) }

func (o *order) isReady(pos int) bool { return o.ready[pos>>6&(len(o.ready)-1)]>>(pos&63)&1 == 1 }

// isOpen reports whether a message is still to be confirmed in the window.
func (o *order) isOpen(pos int) bool { return o.at(pos).state <= failed }

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
	o.failed, o.beyond, o.deferring = 0, 0, 0
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
	if !behind || o.keepsOrder {
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

// leastTried leaves of messages that may be sent, oldest first, up to n that have been tried least. Where order is strict, what
// stands behind one of its key that was tried more is left out too.
//
// Among messages that fail for ever, others must find their turn, also if one failure keeps a whole call from being tried.
func (o *order) leastTried(picked []int, n int, strict bool) []int {
	least := uint16(math.MaxUint16)
	clear(o.seen)
	for _, pos := range picked {
		if s := o.at(pos); !o.seen[s.key] {
			if strict {
				o.see(s.key)
			}
			least = min(least, s.tries)
		}
	}
	clear(o.seen)
	kept := picked[:0]
	for _, pos := range picked {
		switch s := o.at(pos); {
		case len(kept) == n:
			return kept
		case o.seen[s.key]:
		case s.tries > least:
			if strict {
				o.see(s.key)
			}
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
	o.leave(pos, confirmed)
	o.beyond++
}

// fail notes that a message was sent in vain.
func (o *order) fail(pos int) {
	if s := o.at(pos); s.state == fresh {
		s.state = failed
		o.failed++
	}
}

// blame notes that a message may have failed by its own fault. It returns how often it has, and whether others of its name,
// passed of which there have been so far, have passed since the last time or with it.
func (o *order) blame(pos int, passed uint32, with bool) (tries int, others bool) {
	s := o.at(pos)
	others = with || s.tries > 0 && s.seen != passed
	s.tries, s.seen = min(s.tries, math.MaxUint16-1)+1, passed
	return int(s.tries), others
}

// beginDefer takes a message out of the order that is to be deferred, whether it may be sent or not.
func (o *order) beginDefer(pos int) {
	o.leave(pos, deferring)
	o.deferring++
}

// endDefer notes that a message has been deferred. It counts as confirmed.
func (o *order) endDefer(pos int) {
	o.at(pos).state = confirmed
	o.deferring--
	o.beyond++
}

// behind returns the messages of a message's key that come after it and are still to be confirmed.
func (o *order) behind(pos int) []int {
	var all []int
	for s := o.at(pos); s.next > 0; s = o.at(pos) {
		pos += int(s.next)
		if o.isOpen(pos) {
			all = append(all, pos)
		}
	}
	return all
}

// leave takes a message out of the order. Those behind it need not wait for it any more.
func (o *order) leave(pos int, as state) {
	s := o.at(pos)
	if s.state == failed {
		o.failed--
	}
	s.state = as
	wasReady := o.isReady(pos)
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
	case !wasReady: // an earlier one of its key is still to come: it hands the turn on
	default:
		o.handOn(pos)
	}
}

// handOn gives the turn of a key, whose first message has left, to the next one that has not.
func (o *order) handOn(pos int) {
	s := o.at(pos)
	for s.next > 0 {
		pos += int(s.next)
		if o.isOpen(pos) {
			o.set(pos)
			return
		}
		s = o.at(pos)
	}
	delete(o.keys, s.key)
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

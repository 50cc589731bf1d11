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
	failed          // sent and to be sent again
	deferring       // leaving the window: no message waits for it
	confirmed
)

// order tracks which messages of a window may be sent: all unconfirmed ones if the publisher keeps
// order, otherwise the first of each key.
//
// A window with one hot key means a call for each message, so no call may scan the whole window.
// Therefore the messages that may be sent are a bit set, and the messages of a key are linked, so
// that the next one is found when one is confirmed.
type order struct {
	keepsOrder bool

	slots []slot   // ring by position; the length is a power of two
	ready []uint64 // bit set by slot: the message may be sent
	keys  map[uint64]queue
	seen  map[uint64]bool // scratch space of leastTried

	failed    int // unconfirmed messages that were sent
	beyond    int // confirmed messages behind an unconfirmed one
	deferring int
}

// slot is the state of one message.
type slot struct {
	key   uint64
	next  uint32 // distance to the next message of its key; 0 if none
	state state
	tries uint16 // failures for which the message may be the cause
	seen  uint32 // the counter of successes at its last failure
}

// queue is the list of unconfirmed messages of a key.
type queue struct {
	tail int // the last message; it may be confirmed if the publisher violates its ordering guarantee
	left int // their number; maintained only if the publisher keeps order
}

func (o *order) at(pos int) *slot { return &o.slots[pos&(len(o.slots)-1)] }

func (o *order) set(pos int)   { o.ready[pos>>6&(len(o.ready)-1)] |= 1 << (pos & 63) }
func (o *order) unset(pos int) { o.ready[pos>>6&(len(o.ready)-1)] &^= 1 << (pos & 63) }

func (o *order) isReady(pos int) bool { return o.ready[pos>>6&(len(o.ready)-1)]>>(pos&63)&1 == 1 }

// isOpen reports whether a message still has to be confirmed.
func (o *order) isOpen(pos int) bool { return o.at(pos).state <= failed }

// reserve makes room for the messages from first to end. Those before known have entered already.
func (o *order) reserve(first, known, end int) {
	if o.keys == nil {
		o.keys = make(map[uint64]queue)
	}
	size := max(len(o.slots), 128)
	for size < end-first+64 { // first and end must not share a word of bits
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

// reset removes all messages.
func (o *order) reset() {
	clear(o.ready)
	clear(o.keys)
	o.failed, o.beyond, o.deferring = 0, 0, 0
}

// enter adds the next message.
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

// choose appends to picked up to n messages between first and end that may be sent, oldest first.
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

// leastTried reduces picked to at most n messages with the fewest attempts, oldest first. If
// strict, it also drops messages behind one of the same key that has more attempts.
//
// Without it, messages that always fail would starve the others, for instance if one failure makes
// a whole call fail.
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

// see records a key if its order matters.
func (o *order) see(key uint64) {
	if key == 0 || !o.keepsOrder {
		return // picked has at most one message per key
	}
	if o.seen == nil {
		o.seen = make(map[uint64]bool)
	}
	o.seen[key] = true
}

// confirm records that a message was confirmed.
func (o *order) confirm(pos int) {
	o.leave(pos, confirmed)
	o.beyond++
}

// fail records that a message was sent and not confirmed.
func (o *order) fail(pos int) {
	if s := o.at(pos); s.state == fresh {
		s.state = failed
		o.failed++
	}
}

// blame records a failure for which the message may be the cause. It returns the number of such
// failures, and whether others succeeded since the last one or in the same call. passed is the
// current counter of successes.
func (o *order) blame(pos int, passed uint32, with bool) (tries int, others bool) {
	s := o.at(pos)
	others = with || s.tries > 0 && s.seen != passed
	s.tries, s.seen = min(s.tries, math.MaxUint16-1)+1, passed
	return int(s.tries), others
}

// beginDefer removes a message that is to be deferred from the order, whether or not it may be
// sent.
func (o *order) beginDefer(pos int) {
	o.leave(pos, deferring)
	o.deferring++
}

// endDefer records that a message was deferred. It counts as confirmed.
func (o *order) endDefer(pos int) {
	o.at(pos).state = confirmed
	o.deferring--
	o.beyond++
}

// behind returns the open messages of the same key that come after a message.
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

// leave removes a message from the order and unblocks the next one of its key.
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
	case !wasReady: // an earlier message of its key is open and will pass the turn on
	default:
		o.handOn(pos)
	}
}

// handOn makes the next open message of a key ready.
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

// hashKey returns a hash of the ordering key without building the key; 0 if there is none. Two keys
// with the same hash are treated as one key, which is safe.
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

// hashText is hashKey for an ordering key.
func hashText(key string) uint64 { return max(maphash.String(seed, key), 1) }

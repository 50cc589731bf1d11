package relay

import (
	"errors"
	"hash/maphash"
	"time"

	"github.com/postrider/postrider"
)

type state uint8

const (
	freshState state = iota
	failedState
	refusedState
	confirmedState
)

// chunk is the run of messages that a lane is publishing, in one call or in waves. A message that failed is held for a
// while, and holds back the later ones of its key; with a publisher that does not keep order, so does one in flight.
type chunk struct {
	keepsOrder bool

	msgs  []postrider.Message
	first int // messages before it are confirmed
	last  int // the last confirmed message
	left  int // messages not confirmed

	// By message; filled with the first failure, and always if the publisher does not keep order.
	states []state
	keys   []uint64
	due    []time.Time // when a message that failed may be sent again

	picked   []int // the messages of the call
	repeated int   // how many of them have been sent before
	blocked  map[uint64]struct{}

	gathered []postrider.Message // memory for msgs and for calls, where they are not a part of one batch
	scratch  []postrider.Message
}

func (c *chunk) begin(msgs []postrider.Message) {
	c.msgs, c.first, c.last, c.left = msgs, 0, -1, len(msgs)
	c.states = c.states[:0]
	c.picked = c.picked[:0]
	c.repeated = 0
	if !c.keepsOrder {
		c.track()
	}
}

// clear lets go of the messages.
func (c *chunk) clear() {
	clear(c.gathered)
	c.gathered = c.gathered[:0]
	if len(c.scratch) > 0 {
		clear(c.scratch[:cap(c.scratch)])
		c.scratch = c.scratch[:0]
	}
	c.msgs = nil
}

// track starts the bookkeeping by message.
func (c *chunk) track() {
	c.keys, c.due = c.keys[:0], c.due[:0]
	for i := range c.msgs {
		c.states = append(c.states, freshState)
		c.keys = append(c.keys, hashKey(&c.msgs[i]))
		c.due = append(c.due, time.Time{})
	}
	if c.blocked == nil {
		c.blocked = make(map[uint64]struct{})
	}
}

func (c *chunk) tracked() bool { return len(c.states) > 0 }

// pick chooses the messages of the next call: those that are neither confirmed nor held, nor stand behind one of their
// key that is. If there are none, it returns when the first held one is due. With torn, only those that stand before a
// confirmed one are chosen.
func (c *chunk) pick(now time.Time, torn bool) (call []postrider.Message, due time.Time) {
	if !c.tracked() {
		return c.msgs, now
	}
	c.picked = c.picked[:0]
	c.repeated = 0
	clear(c.blocked)
	end := len(c.msgs)
	if torn {
		end = c.last
	}
	for i := c.first; i < end; i++ {
		key := c.keys[i]
		if c.states[i] == confirmedState {
			continue
		}
		if _, ok := c.blocked[key]; ok && key != 0 {
			continue
		}
		held := c.due[i].After(now)
		if held && (due.IsZero() || c.due[i].Before(due)) {
			due = c.due[i]
		}
		if held || !c.keepsOrder {
			c.blocked[key] = struct{}{}
		}
		if held {
			continue
		}
		c.picked = append(c.picked, i)
		if c.states[i] != freshState {
			c.repeated++
		}
	}
	n := len(c.picked)
	if n == 0 {
		return nil, due
	}
	if from, to := c.picked[0], c.picked[n-1]+1; to-from == n {
		return c.msgs[from:to], now
	}
	c.scratch = c.scratch[:0]
	for _, i := range c.picked {
		c.scratch = append(c.scratch, c.msgs[i])
	}
	return c.scratch, now
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

// record notes which messages of the call were confirmed. It returns the first error.
func (c *chunk) record(errs []error) (confirmed, failed int, cause error) {
	if !c.tracked() {
		for i := range c.msgs {
			if cause = answer(errs, i); cause != nil {
				break
			}
		}
		if cause == nil {
			confirmed, c.left = c.left, 0
			return confirmed, 0, nil
		}
		c.track()
		for i := range c.msgs {
			c.picked = append(c.picked, i)
		}
	}
	for i, at := range c.picked {
		if err := answer(errs, i); err != nil {
			failed++
			if cause == nil {
				cause = err
			}
			continue
		}
		confirmed++
		c.states[at] = confirmedState
		c.last = max(c.last, at)
	}
	c.left -= confirmed
	return confirmed, failed, cause
}

// advance moves the confirmed prefix and returns by how many messages.
func (c *chunk) advance() int {
	from := c.first
	if c.left == 0 {
		c.first = len(c.msgs)
	}
	for c.first < len(c.msgs) && c.states[c.first] == confirmedState {
		c.first++
	}
	return c.first - from
}

func (c *chunk) hold(i int, due time.Time, s state) {
	c.due[i], c.states[i] = due, s
}

// torn reports whether ending now would repeat confirmed messages, and whether there is hope to avoid it: messages
// that wait before a confirmed one, none of which is refused.
func (c *chunk) torn() bool {
	for i := c.first; i < c.last; i++ {
		if c.states[i] == refusedState {
			return false
		}
	}
	return c.first < c.last
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

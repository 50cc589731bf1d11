package nats

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// position tells a message from all others of a subject. The time is part of it, because a stream that was deleted and
// made again counts from one.
type position struct {
	sequence uint64
	stored   int64
}

func positionOf(meta *jetstream.MsgMetadata) position {
	return position{meta.Sequence.Stream, meta.Timestamp.UnixNano()}
}

// String says where a message stands. The time tells it from the one with the same number of a stream that was deleted and
// made again.
func (p position) String() string { return fmt.Sprintf("%d/%d", p.sequence, p.stored) }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.sequence, q.sequence), cmp.Compare(p.stored, q.stored))
}

// What a consumer says of a message, at the address that came with it.
var (
	sayDone    = []byte("+ACK")
	sayWorking = []byte("+WPI")
	sayAgain   = []byte("-NAK")
)

// held are the messages that were received and are not done, and those whose acknowledgement may be lost. They outlive
// connections: the server takes an answer over any.
type held struct {
	valid func() bool // nil means always

	mu   sync.Mutex
	conn *client.Conn
	msgs map[position]*holding
}

type holding struct {
	reply string // of the last delivery
	done  bool
}

// say answers for a message. If that fails, the connection is gone, and it is said again over the next. A process whose lease is over
// only gives messages back: the gate of the next one counts what is pending, and waits for what is kept.
func (h *held) say(what []byte, m *holding) {
	if h.valid == nil || bytes.Equal(what, sayAgain) || h.valid() {
		_ = h.conn.Publish(m.reply, what)
	}
}

// use makes everything that follows go over a connection, and says again what may be lost.
func (h *held) use(conn *client.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn = conn
	h.each(true, func(_ position, m *holding) { h.say(sayDone, m) })
	h.each(false, func(_ position, m *holding) { h.say(sayWorking, m) })
}

// each goes through the messages that are done, or those that are not, the oldest first.
func (h *held) each(done bool, do func(position, *holding)) {
	for _, at := range slices.SortedFunc(maps.Keys(h.msgs), position.compare) {
		if m := h.msgs[at]; m.done == done {
			do(at, m)
		}
	}
}

// take reports whether a message is new here. One that is not has come again because its lease had run out.
func (h *held) take(at position, reply string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.msgs[at]
	if m == nil {
		h.msgs[at] = &holding{reply: reply}
		return true
	}
	m.reply = reply
	if m.done {
		h.say(sayDone, m)
	}
	return false
}

func (h *held) done(at position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.msgs[at]; m != nil {
		m.done = true
		h.say(sayDone, m)
	}
}

// open is how many messages are not done.
func (h *held) open() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.msgs {
		if !m.done {
			n++
		}
	}
	return n
}

// forget drops messages that nobody handles. They come again.
func (h *held) forget(which []position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range which {
		delete(h.msgs, at)
	}
}

// keep renews leases until the connection ends, because a message may wait long for its turn, and lets go what is done.
func (h *held) keep(l *link, lease, timeout time.Duration) {
	renewal := time.NewTicker(max(lease/3, time.Millisecond))
	defer renewal.Stop()
	settling := time.NewTicker(time.Second)
	defer settling.Stop()
	for {
		select {
		case <-renewal.C:
			h.renew()
		case <-settling.C:
			h.settle(l.conn, timeout)
		case <-l.Lost():
			return
		}
	}
}

func (h *held) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(false, func(_ position, m *holding) { h.say(sayWorking, m) })
}

// settle lets go what the server has certainly been told of.
func (h *held) settle(conn *client.Conn, timeout time.Duration) {
	var done []position
	h.mu.Lock()
	for at, m := range h.msgs {
		if m.done {
			done = append(done, at)
		}
	}
	h.mu.Unlock()
	if len(done) > 0 && conn.FlushTimeout(timeout) == nil {
		h.forget(done)
	}
}

// giveBack lets others have what is not done, the oldest first.
func (h *held) giveBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(false, func(at position, m *holding) {
		h.say(sayAgain, m)
		delete(h.msgs, at)
	})
}

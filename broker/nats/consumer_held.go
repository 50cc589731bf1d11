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

// position identifies a message of a subject. It includes the time, because a stream that was
// deleted and created again counts from one.
type position struct {
	sequence uint64
	stored   int64
}

func positionOf(meta *jetstream.MsgMetadata) position {
	return position{meta.Sequence.Stream, meta.Timestamp.UnixNano()}
}

// String returns the position as text. The time distinguishes equal sequence numbers of a stream
// that was deleted and created again.
func (p position) String() string { return fmt.Sprintf("%d/%d", p.sequence, p.stored) }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.sequence, q.sequence), cmp.Compare(p.stored, q.stored))
}

// Answers to a delivery, sent to its reply subject.
var (
	sayDone    = []byte("+ACK")
	sayWorking = []byte("+WPI")
	sayAgain   = []byte("-NAK")
)

// held tracks the messages that were received and are not done, and those whose acknowledgement may
// be lost. They outlive connections: the server accepts an answer over any connection.
type held struct {
	valid func() bool // nil means always valid

	mu   sync.Mutex
	conn *client.Conn
	msgs map[position]*holding
}

type holding struct {
	reply string // of the last delivery
	done  bool
}

// say answers a delivery. An error means that the connection is gone; use then repeats the answer
// over the next one. A process whose lease is over only gives messages back: the gate of the next
// owner waits until nothing else is pending.
func (h *held) say(what []byte, m *holding) {
	if h.valid == nil || bytes.Equal(what, sayAgain) || h.valid() {
		_ = h.conn.Publish(m.reply, what)
	}
}

// use sends all further answers over conn, and repeats those that may be lost.
func (h *held) use(conn *client.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn = conn
	h.each(true, func(_ position, m *holding) { h.say(sayDone, m) })
	h.each(false, func(_ position, m *holding) { h.say(sayWorking, m) })
}

// each visits the messages that are done, or those that are not, oldest first.
func (h *held) each(done bool, do func(position, *holding)) {
	for _, at := range slices.SortedFunc(maps.Keys(h.msgs), position.compare) {
		if m := h.msgs[at]; m.done == done {
			do(at, m)
		}
	}
}

// take records a delivery and reports whether the message is new here. A known message was
// redelivered because its lease expired.
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

// open returns how many messages are not done.
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

// forget drops messages that are not being handled. The server redelivers them.
func (h *held) forget(which []position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range which {
		delete(h.msgs, at)
	}
}

// keep renews leases until the connection ends, because a message may wait long for its turn, and
// forgets messages whose acknowledgement has arrived.
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

// settle forgets messages whose acknowledgement the server has certainly received.
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

// giveBack returns messages that are not done to the server, oldest first.
func (h *held) giveBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.each(false, func(at position, m *holding) {
		h.say(sayAgain, m)
		delete(h.msgs, at)
	})
}

package nats

import (
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	lookEvery   = 50 * time.Millisecond // interval of queries while the gate is closed
	mostLosses  = 3                     // consecutive deliveries to other processes before they count as alive
	mostWaiting = 10_000                // maximum number of messages behind a closed gate
)

// gate prevents messages from overtaking older ones that a dead process received. JetStream
// redelivers those only when their leases expire, and delivers new messages meanwhile. The gate is
// closed while another process may hold messages: arriving messages then wait, and are released
// oldest first.
//
// The server numbers all deliveries. A missing number went to another process or was lost on the
// way.
type gate struct {
	strict  bool          // no other process is alive: open only when all messages of others have been redelivered
	lease   time.Duration // the longest lease of a message
	next    uint64        // the next delivery number, unless another process gets one
	until   time.Time     // when the gate opens in any case; zero while it is open
	looked  time.Time
	losses  int
	lost    time.Time // when a loss was last seen
	waiting map[position]jetstream.Msg
}

// leaseOf returns the longest lease that a message can have.
func leaseOf(durable jetstream.ConsumerConfig) time.Duration {
	return max(durable.AckWait, slices.Max(append(durable.BackOff, 0)))
}

// newGate returns a gate for a new connection that has received nothing yet.
func newGate(info *jetstream.ConsumerInfo, open int, now time.Time) *gate {
	g := &gate{
		lease:   leaseOf(info.Config),
		next:    info.Delivered.Consumer + 1,
		waiting: make(map[position]jetstream.Msg),
	}
	if info.NumAckPending > open {
		g.close(now)
	}
	return g
}

func (g *gate) closed() bool { return !g.until.IsZero() }

// close closes the gate for as long as the leases of a dead process can last, plus half of that in
// case it renewed them once more.
func (g *gate) close(now time.Time) { g.until = now.Add(g.lease + g.lease/2 + time.Second) }

// delivered records a delivery number. It returns false if other processes keep receiving: there is
// no order among living processes, unless the gate is strict.
func (g *gate) delivered(number uint64, now time.Time) bool {
	missing := number != g.next
	g.next = number + 1
	if !missing {
		return true
	}
	if now.Sub(g.lost) > 10*g.lease {
		g.losses = 0
	}
	g.losses++
	g.lost = now
	alive := g.losses > mostLosses
	if !alive || g.strict {
		g.close(now)
	}
	return !alive
}

// due reports whether it is time to query the server again.
func (g *gate) due(now time.Time) bool { return g.closed() && now.Sub(g.looked) >= lookEvery }

// look opens the gate if the server reports no more pending messages than this process has open. It
// returns false if other processes still have messages after the time limit; the gate then opens
// nevertheless, unless it is strict.
func (g *gate) look(pending, open int, now time.Time) bool {
	g.looked = now
	alone := pending <= open
	patient := now.Before(g.until) && len(g.waiting) < mostWaiting
	if !alone && (patient || g.strict) {
		return patient
	}
	g.until = time.Time{}
	return alone
}

// release returns the waiting messages, oldest first.
func (g *gate) release() []jetstream.Msg {
	var msgs []jetstream.Msg
	for _, at := range slices.SortedFunc(maps.Keys(g.waiting), position.compare) {
		msgs = append(msgs, g.waiting[at])
	}
	clear(g.waiting)
	return msgs
}

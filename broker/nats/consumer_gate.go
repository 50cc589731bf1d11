package nats

import (
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	lookEvery   = 50 * time.Millisecond // how often a closed gate looks whether it may open
	mostLosses  = 3                     // deliveries to others in a row, before they count as alive
	mostWaiting = 10_000                // messages behind a closed gate
)

// gate keeps messages from overtaking older ones of a dead process. JetStream delivers those again when their leases
// have run out, and new ones meanwhile. While somebody else may hold messages the gate is closed, and all that comes
// waits; when it opens, the oldest goes first.
//
// The server numbers all deliveries. A number that is missing was another process's, or lost on the way.
type gate struct {
	strict  bool          // nobody else is alive: it opens only when all that was another's has come
	lease   time.Duration // the longest of a message
	next    uint64        // number of the next delivery, unless somebody else gets one
	until   time.Time     // when the gate opens whatever happens; zero while it is open
	looked  time.Time
	losses  int
	lost    time.Time // when losses were last seen
	waiting map[position]jetstream.Msg
}

// leaseOf is the longest lease of a message.
func leaseOf(durable jetstream.ConsumerConfig) time.Duration {
	return max(durable.AckWait, slices.Max(append(durable.BackOff, 0)))
}

// newGate returns a gate for a new connection that has received nothing.
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

// close closes the gate for as long as a dead process's leases can last, and half of that in case it is not quite dead.
func (g *gate) close(now time.Time) { g.until = now.Add(g.lease + g.lease/2 + time.Second) }

// delivered takes note of a delivery's number. It reports false when others go on receiving: there is no order to keep
// among living processes, unless the gate is strict.
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

// due says whether it is time to ask the server what is pending.
func (g *gate) due(now time.Time) bool { return g.closed() && now.Sub(g.looked) >= lookEvery }

// look opens the gate if the server knows of no pending messages but ours, of which that many are open. It reports false
// when it has waited long enough though there are others: the gate opens then, unless it is strict.
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

// release returns what has waited, the oldest first.
func (g *gate) release() []jetstream.Msg {
	var msgs []jetstream.Msg
	for _, at := range slices.SortedFunc(maps.Keys(g.waiting), position.compare) {
		msgs = append(msgs, g.waiting[at])
	}
	clear(g.waiting)
	return msgs
}

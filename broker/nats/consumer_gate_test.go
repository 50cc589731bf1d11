package nats

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func gateWith(pending, open int, now time.Time) *gate {
	return newGate(&jetstream.ConsumerInfo{
		Config:        jetstream.ConsumerConfig{AckWait: 10 * time.Second},
		Delivered:     jetstream.SequenceInfo{Consumer: 7},
		NumAckPending: pending,
	}, open, now)
}

func TestGateIsOpenWhenNobodyElseHoldsMessages(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := gateWith(3, 3, now)
	for number := uint64(8); number < 20; number++ {
		if !g.delivered(number, now) || g.closed() {
			t.Fatalf("delivery %d closes the gate", number)
		}
	}
}

func TestGateWaitsForTheDead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := gateWith(3, 1, now)
	if !g.closed() || !g.due(now) {
		t.Fatal("open, though others hold messages")
	}
	for _, sequence := range []uint64{30, 10, 20} {
		g.waiting[position{sequence: sequence}] = nil
	}
	if !g.look(5, 4, now) || !g.closed() || g.due(now) {
		t.Error("opened too early")
	}
	now = now.Add(10 * time.Second)
	if !g.due(now) || !g.look(4, 4, now) || g.closed() {
		t.Error("still closed")
	}
	if n := len(g.release()); n != 3 || len(g.waiting) != 0 {
		t.Errorf("%d messages were released, %d still wait", n, len(g.waiting))
	}
}

func TestGateDoesNotWaitForTheLivingForever(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := gateWith(3, 1, now)
	now = now.Add(16 * time.Second)
	if g.look(3, 1, now) || g.closed() {
		t.Error("still closed")
	}
	number := uint64(8)
	for range mostLosses {
		number += 2
		if !g.delivered(number, now) || !g.closed() {
			t.Error("a delivery to somebody else is not noticed")
		}
		g.look(1, 1, now)
	}
	if g.delivered(number+2, now) || g.closed() {
		t.Error("others that go on receiving still close the gate")
	}
	now = now.Add(10*g.lease + 1)
	if !g.delivered(number+4, now) || !g.closed() {
		t.Error("others that were gone for long do not close the gate")
	}
}

func TestGateHoldsNotTooMuch(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := gateWith(3, 1, now)
	for sequence := range uint64(mostWaiting) {
		g.waiting[position{sequence: sequence}] = nil
	}
	if g.look(mostWaiting+3, mostWaiting, now) || g.closed() {
		t.Error("still closed")
	}
}

func TestPositionsAreInTheOrderOfTheStream(t *testing.T) {
	t.Parallel()
	got := []position{{3, 1}, {1, 9}, {2, 5}} // clocks can go back
	slices.SortFunc(got, position.compare)
	if want := []position{{1, 9}, {2, 5}, {3, 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// A strict gate also waits for living processes: none of them may receive, so their messages are
// redelivered.
func TestStrictGateWaitsForAll(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := gateWith(3, 1, now)
	g.strict = true
	if !g.look(3, 1, now.Add(15*time.Second)) || g.look(3, 1, now.Add(time.Hour)) || !g.closed() {
		t.Error("open, though others hold messages, or they were not reported")
	}
	if !g.look(2, 2, now.Add(time.Hour)) || g.closed() {
		t.Error("still closed")
	}
	for number := uint64(9); number < 40; number += 2 {
		if g.delivered(number, now); !g.closed() {
			t.Fatal("a delivery to somebody else is not noticed")
		}
		g.look(1, 1, now)
	}
}

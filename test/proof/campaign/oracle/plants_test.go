package oracle

import (
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// lastOf returns the last message of a key that is not poison.
func (h *history) lastOf(destination, key string) record.Message {
	for _, i := range slices.Backward(h.intents) {
		if i.Destination == destination && i.Key == key && !i.Poison {
			return i.Message
		}
	}
	panic("none")
}

// again delivers an early message of a destination again.
func (h *history) again(destination string, at time.Time) {
	r := h.receipts[destination][10]
	r.At = at
	h.arrive(r)
}

// swap delivers two adjacent messages of a key in the wrong order, during a quiet time.
func (h *history) swap(destination, key string) { h.swapFrom(destination, key, 10) }

func (h *history) swapFrom(destination, key string, from int) {
	all := h.receipts[destination]
	var places []int
	for i := from; len(places) < 2; i++ {
		if all[i].Key == key {
			places = append(places, i)
		}
	}
	a, b := &all[places[0]], &all[places[1]]
	a.Message, b.Message, a.Sum, b.Sum = b.Message, a.Message, b.Sum, a.Sum
}

// flood has a tenant flood a destination during a quiet time. A message of another arrives there
// after a while.
func (h *history) flood(took time.Duration) {
	h.timeline = append(h.timeline,
		record.Event{Fault: 9, At: quiet, Kind: "tenant-flood", Target: "nats", Phase: record.Begin, Tenant: "flood"},
		record.Event{Fault: 9, At: quiet.Add(10 * time.Second), Kind: "tenant-flood", Phase: record.Heal},
		record.Event{Fault: 9, At: quiet.Add(10 * time.Second), Kind: "tenant-flood", Phase: record.Recovered})
	for i, intent := range h.intents {
		if intent.Destination == "nats" && intent.At.After(quiet) && !intent.Poison {
			for j := range h.receipts["nats"] {
				if r := &h.receipts["nats"][j]; r.ID == intent.ID {
					r.At = h.intents[i].At.Add(took)
				}
			}
			return
		}
	}
}

// sendBoth has two relays send a key concurrently, near a fault: the second starts some messages
// back, and both continue in turn.
func (h *history) sendBoth(destination, key string, turns int) {
	var all []record.Receipt
	seen := map[string]bool{}
	for _, r := range h.receipts[destination] {
		if r.Key == key && !seen[r.ID] {
			seen[r.ID] = true
			all = append(all, r)
		}
	}
	from := len(all) / 2
	both := slices.Clone(all[:from])
	for i := range turns {
		both = append(both, all[from-15+i], all[from+i])
	}
	h.receipts[destination] = slices.DeleteFunc(h.receipts[destination], func(r record.Receipt) bool { return r.Key == key })
	for _, r := range append(both, all[from+turns:]...) {
		r.At = faultBegin(0).Add(time.Second)
		h.arrive(r)
	}
}

// forget removes the recovery of a fault from the timeline, so that the oracle looks for it in the
// samples.
func (h *history) forget(fault int) {
	h.timeline = slices.DeleteFunc(h.timeline, func(e record.Event) bool { return e.Fault == fault && e.Phase == record.Recovered })
}

// wait makes messages pending from one time to another.
func (h *history) wait(from, to time.Time) {
	for i, s := range h.samples {
		if !s.At.Before(from) && s.At.Before(to) {
			h.samples[i].Backlog = &record.Backlog{Messages: 1000, OldestSeconds: 5}
		}
	}
}

// grow increases a value by one with each sample.
func (h *history) grow(what func(p *record.Process, n int)) {
	for n := range h.samples {
		for i := range h.samples[n].Processes {
			what(&h.samples[n].Processes[i], n)
		}
	}
}

// name sets when the cause of the fault of Kafka is named, in seconds.
func (h *history) name(after float64) {
	for i, e := range h.timeline {
		if e.Phase == record.Named {
			h.timeline[i].Seconds = after
		}
	}
}

// stand keeps a shard of Kafka at one position.
func (h *history) stand(from time.Time, length time.Duration) {
	for i, s := range h.samples {
		if !s.At.Before(from) && !s.At.After(from.Add(length)) {
			h.samples[i].Waiting.Shards = []record.Shard{{Feed: "kafka", Number: 2, Position: "here"}}
		}
	}
}

// bury adds a dead letter during a quiet time.
func (h *history) bury(d record.DeadLetter) {
	d.ID, d.Feed = "x", "kafka"
	h.samples[10].Waiting.Dead = append(h.samples[10].Waiting.Dead, d)
}

// replay has an operator ask for messages of NATS again, during a quiet time.
func (h *history) replay(messages int64) {
	h.timeline = append(h.timeline,
		record.Event{Fault: 9, At: quiet.Add(-time.Second), Kind: "operator-replay", Phase: record.Begin, Touches: []string{"nats"}, Again: messages},
		record.Event{Fault: 9, At: quiet, Kind: "operator-replay", Phase: record.Heal})
}

// firsts leaves out what came again, except at one time.
func firsts(all []record.Receipt, except time.Time) []record.Receipt {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(r record.Receipt) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again && !r.At.Equal(except)
	})
}

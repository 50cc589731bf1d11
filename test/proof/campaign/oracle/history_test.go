package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// history is a synthetic run: all records of its files, which tests change before they are written.
type history struct {
	run        record.Run
	timeline   []record.Event
	samples    []record.Sample
	intents    []record.Intent
	receipts   map[string][]record.Receipt
	effects    []record.Effect
	dead       []record.Dead
	foreign    []record.Foreign
	operations []record.Operation
	leases     []record.Lease
	without    []string // files to leave out
}

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const minutes = 10

// quiet is a time without a fault in a clean history.
var quiet = begin.Add(50 * time.Second)

// The faults of a clean history: one every 100 s, 10 s long.
var clean = []record.Event{
	{Kind: "relay-kill", Target: "relay1", Touches: []string{record.Relay}},
	{Kind: "relay-stop", Target: "relay2", Touches: []string{record.Relay}, Clean: true},
	{Kind: "broker-kill", Target: "kafka", Touches: []string{"kafka"}, Refuses: "kafka", Seconds: 1},
	{Kind: "relay-pause", Target: "relay3", Touches: []string{record.Relay}, Zombie: true},
	{Kind: "consumer-kill", Target: "consumer1", Touches: []string{record.Consumer}},
}

// brokerFault is the number of the fault in which Kafka accepts nothing.
const brokerFault = 3

func faultBegin(i int) time.Time { return begin.Add(time.Duration(i+1) * 100 * time.Second) }

// newHistory returns a run in which nothing forbidden happened: messages of all keys reach their
// destination in order, some again after a relay is killed, and every consumer processes them once.
func newHistory(seed uint64, messages int) *history {
	random := rand.New(rand.NewPCG(seed, 0))
	h := &history{receipts: map[string][]record.Receipt{}}
	h.run = record.Run{
		ID: fmt.Sprintf("made-up-%d", seed), Seed: int64(seed), Begin: begin, End: begin.Add(minutes * time.Minute),
		Healed:    begin.Add((minutes - 1) * time.Minute),
		Consumers: map[string][]string{"kafka": {"billing", "stock"}, "nats": {"billing"}},
		Tallies:   map[string]record.Tally{},
		Attempts:  3,
	}
	for i, e := range clean {
		e.Fault, e.At, e.Phase = i+1, faultBegin(i), record.Begin
		h.timeline = append(h.timeline, e,
			record.Event{Fault: e.Fault, Kind: e.Kind, At: e.At.Add(10 * time.Second), Phase: record.Heal, Seconds: 10},
			record.Event{Fault: e.Fault, Kind: e.Kind, At: e.At.Add(13 * time.Second), Phase: record.Recovered, Seconds: 3})
	}
	h.timeline = append(h.timeline, record.Event{Fault: brokerFault, Phase: record.Named, At: faultBegin(2).Add(5 * time.Second), Seconds: 4})
	h.deliver(random, messages)
	for i := range int64(30) {
		h.foreign = append(h.foreign, record.Foreign{N: i + 1, Destination: "nats", Form: "bare", Ends: 1 + i%2})
		h.operations = append(h.operations, record.Operation{Kind: "payment", Client: "c1", N: i, Count: i % 2, Acked: i%2 == 1})
	}
	h.watch(random)
	return h
}

func (h *history) deliver(random *rand.Rand, messages int) {
	destinations := []string{"http", "kafka", "nats"}
	seqs := map[string]int64{}
	again := map[string][]record.Receipt{} // sent by a relay, but not settled
	killed := faultBegin(0)
	for n := range messages {
		at := begin.Add(time.Second + time.Duration(n)*(minutes-2)*time.Minute/time.Duration(messages))
		destination := destinations[random.IntN(len(destinations))]
		key := fmt.Sprintf("k%d", random.IntN(6))
		seqs[destination+key]++
		m := record.Message{Destination: destination, Key: key, Seq: seqs[destination+key], ID: fmt.Sprintf("%016x-%d", random.Uint64(), n)}
		intent := record.Intent{Message: m, Sum: random.Uint64(), Poison: random.IntN(50) == 0, Unnumbered: key == "k5", Unordered: key == "k4", At: at}
		h.intents = append(h.intents, intent)
		tally := h.run.Tallies[destination]
		tally.Inserted++
		if intent.Poison {
			h.dead = append(h.dead, record.Dead{ID: m.ID, State: record.StateDiscarded, Actor: "operator"})
			tally.Discarded++
			h.run.Tallies[destination] = tally
			continue
		}
		tally.Sent++
		h.run.Tallies[destination] = tally
		if at.After(killed) {
			for _, d := range destinations {
				for _, r := range again[d] {
					r.At = at
					h.arrive(r)
				}
			}
			killed = at.Add(time.Hour)
		}
		r := record.Receipt{Message: m, Sum: intent.Sum, At: at.Add(5 * time.Millisecond)}
		if intent.Unnumbered {
			r.Seq = 0
		}
		again[destination] = append(again[destination], r)
		again[destination] = again[destination][max(0, len(again[destination])-8):]
		h.arrive(r)
		for _, consumer := range h.run.Consumers[destination] {
			h.effects = append(h.effects, record.Effect{Message: r.Message, N: int64(len(h.effects) * 3), Consumer: consumer})
		}
	}
}

// arrive appends a receipt to a partition of its destination.
func (h *history) arrive(r record.Receipt) {
	all := h.receipts[r.Destination]
	r.Partition = int(r.Key[1]) % 3
	r.Offset = 0
	for _, other := range slices.Backward(all) {
		if other.Partition == r.Partition {
			r.Offset = other.Offset + 1
			break
		}
	}
	h.receipts[r.Destination] = append(all, r)
}

func (h *history) watch(random *rand.Rand) {
	for at := begin; at.Before(h.run.End); at = at.Add(5 * time.Second) {
		s := record.Sample{At: at, Database: &record.DatabaseSample{Deadlocks: 3, IdleSeconds: 0.1}, Backlog: &record.Backlog{Messages: 3, OldestSeconds: 0.1}}
		s.Waiting = &record.Waiting{Dead: []record.DeadLetter{{ID: "poison", Feed: "kafka", Poison: true, Attempts: 1, Error: "too large"}}}
		for relay := range 3 {
			s.Processes = append(s.Processes, record.Process{
				Name: fmt.Sprintf("relay%d", relay+1), Role: "relay", PID: 100 + relay,
				RSS: 50<<20 + random.Int64N(4<<20), Goroutines: 60 + random.IntN(10), Files: 20 + random.IntN(3),
			})
		}
		h.samples = append(h.samples, s)
	}
	for n := range int64(600) {
		at := begin.Add(time.Duration(n) * time.Second)
		member := []string{"a", "b", "c"}[n/200]
		h.leases = append(h.leases, record.Lease{
			Feed: "kafka", Shard: 1, N: n, Member: member, Released: n%200 == 199, At: at, Until: at.Add(10 * time.Second)})
	}
}

// write writes the files of the history into a new directory.
func (h *history) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	w, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"intents", "effects", "dead", "operations", "leases", "receipts-http", "receipts-kafka", "receipts-nats"} {
		if !slices.Contains(h.without, name) {
			must(w.Collect(name))
		}
	}
	must(w.Run(h.run))
	all(must, h.without, "timeline", h.timeline, w.Event)
	all(must, h.without, "samples", h.samples, w.Sample)
	all(must, h.without, "intents", h.intents, w.Intent)
	for destination, receipts := range h.receipts {
		all(must, h.without, "receipts-"+destination, receipts, w.Receipt)
	}
	all(must, h.without, "effects", h.effects, w.Effect)
	all(must, h.without, "dead", h.dead, w.Dead)
	all(must, h.without, "foreign", h.foreign, w.Foreign)
	all(must, h.without, "operations", h.operations, w.Operation)
	all(must, h.without, "leases", h.leases, w.Lease)
	must(w.Close())
	return dir
}

func all[T any](must func(error), without []string, name string, records []T, write func(T) error) {
	if slices.Contains(without, name) {
		return
	}
	for _, r := range records {
		must(write(r))
	}
}

// check writes the history and returns the oracle's verdict.
func (h *history) check(t testing.TB) Verdict {
	t.Helper()
	v, err := Check(h.write(t))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

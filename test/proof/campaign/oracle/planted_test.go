package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// planted is one violation in an otherwise clean history.
type planted struct {
	name   string
	plant  func(*history)
	id     string
	figure float64 // -1: not compared
	says   string  // part of an example
}

var plants = []planted{
	{"one lost", func(h *history) { h.receipts["kafka"] = slices.Delete(h.receipts["kafka"], 40, 41) }, "I1", 1, "was not received"},
	{"the last of a key lost", func(h *history) {
		last := h.lastOf("kafka", "k1")
		h.receipts["kafka"] = slices.DeleteFunc(h.receipts["kafka"], func(r record.Receipt) bool { return r.ID == last.ID })
		// The product reports it too, so that its counts are right.
		tally := h.run.Tallies["kafka"]
		tally.Sent, tally.Pending = tally.Sent-1, 1
		h.run.Tallies["kafka"] = tally
	}, "I1", 1, "kafka k1"},
	{"a destination with no receipts", func(h *history) { h.receipts["http"] = nil }, "I1", -1, "http"},
	{"poison that vanished", func(h *history) { h.dead = slices.Delete(h.dead, 3, 4) }, "I1", 1, "is poison"},
	{"poison that is still tried", func(h *history) { h.dead[3].State = record.StatePending }, "I1", 1, "is poison"},
	{"a good message given up", func(h *history) {
		lost := h.receipts["http"][10]
		h.receipts["http"] = slices.DeleteFunc(h.receipts["http"], func(r record.Receipt) bool { return r.ID == lost.ID })
		h.dead = append(h.dead, record.Dead{ID: lost.ID, State: record.StateDead})
	}, "I1", 1, "given it up"},
	{"a foreign message that vanished", func(h *history) { h.foreign[3].Ends = 0 }, "I1", 1, "foreign message 4 of nats (bare)"},
	{"a confirmed call without effect", func(h *history) { h.operations[3].Count = 0 }, "I1", 1, "payment c1 3"},
	{"a message that was never committed", func(h *history) {
		h.arrive(record.Receipt{Message: record.Message{Destination: "nats", Key: "k1", Seq: 1 << 40, ID: "x"}, At: quiet})
	}, "I2", 1, "never committed"},
	{"a key that was never written", func(h *history) {
		h.arrive(record.Receipt{Message: record.Message{Destination: "nats", Key: "k9", Seq: 1, ID: "x"}, At: quiet})
	}, "I2", 1, "nats k9 1 x"},
	{"a number drawn again, by the transaction that was rolled back", func(h *history) {
		r := h.receipts["nats"][20]
		r.ID = "rolled-back"
		h.arrive(r)
	}, "I2", 1, "rolled-back"},
	{"an effect of nothing", func(h *history) {
		h.effects = append(h.effects, record.Effect{
			Message: record.Message{Destination: "nats", Key: "k1", Seq: 3, ID: "x"}, N: 1 << 40, Consumer: "billing"})
	}, "I2", 1, "was done by billing"},
	{"a dead letter without an intent", func(h *history) {
		h.dead = append(h.dead, record.Dead{ID: "x", State: record.StateDead})
	}, "I2", 1, "x is dead"},
	{"an inversion", func(h *history) { h.swap("nats", "k2") }, "I3", 1, "nats k2"},
	{"an inversion of messages without numbers", func(h *history) { h.swap("nats", "k5") }, "I3", 1, "nats k5"},
	{"two relays send at once", func(h *history) { h.sendBoth("http", "k0", 30) }, "I3", 1, "two relays sent at once"},
	{"an inversion of effects", func(h *history) {
		var places []int
		for i, e := range h.effects {
			if e.Consumer == "stock" && e.Key == "k3" {
				places = append(places, i)
			}
		}
		a, b := &h.effects[places[5]], &h.effects[places[6]]
		a.Message, b.Message = b.Message, a.Message
	}, "I4", 1, "stock did kafka k3"},
	{"an effect twice", func(h *history) {
		e := h.effects[100]
		e.N = 1 << 40
		h.effects = append(h.effects, e)
	}, "I5", 1, "again"},
	{"no effect", func(h *history) { h.effects = slices.Delete(h.effects, 100, 101) }, "I5", 1, "did not do"},
	{"a consumer that did nothing", func(h *history) { h.run.Consumers["http"] = []string{"mail"} }, "I5", -1, "mail did not do"},
	{"a call that took effect twice", func(h *history) { h.operations[4].Count = 2 }, "I5", 1, "payment c1 4"},
	{"a duplicate in quiet times", func(h *history) { h.again("kafka", quiet) }, "I6", -1, "came again"},
	{"a duplicate long after a fault", func(h *history) { h.again("kafka", faultBegin(0).Add(19*time.Second)) }, "I6", -1, "came again"},
	{"a duplicate after a clean stop", func(h *history) { h.again("kafka", faultBegin(1).Add(5*time.Second)) }, "I6", -1, "near a clean stop: relay-stop"},
	{"a duplicate while another destination was down", func(h *history) { h.again("nats", faultBegin(2).Add(5*time.Second)) }, "I6", -1, "nats"},
	{"a duplicate while a consumer was away", func(h *history) { h.again("nats", faultBegin(4).Add(5*time.Second)) }, "I6", -1, "nats"},
	{"a duplicate where nothing may come twice", func(h *history) {
		h.run.Once = []string{"kafka"}
		h.again("kafka", faultBegin(0).Add(time.Second))
	}, "I6", -1, "where nothing may"},
	{"a duplicate more than an operator asked for", func(h *history) {
		h.replay(1)
		h.again("nats", quiet)
		h.again("nats", quiet)
		h.run.Once = []string{"nats"}
		h.receipts["nats"] = firsts(h.receipts["nats"], quiet)
	}, "I6", -1, "where nothing may"},
	{"a duplicate at another destination than an operator asked for", func(h *history) {
		h.replay(1)
		h.again("kafka", quiet)
	}, "I6", -1, "kafka"},
	{"a changed byte", func(h *history) { h.receipts["http"][30].Sum++ }, "I7", 1, "has the sum"},
	{"two holders of a row", func(h *history) {
		row := h.leases[300]
		row.Member, row.At = "c", row.At.Add(time.Millisecond)
		h.leases = slices.Insert(h.leases, 301, row)
		for i := range h.leases[302:] { // and it continues
			h.leases[302+i].Member = "c"
		}
	}, "I8", -1, "row 300: b wrote it"},
	{"a lease taken before its end", func(h *history) {
		for i := range 50 {
			h.leases[150+i].Member = "b"
		}
	}, "I8", 1, "a had it until"},
	{"no recovery", func(h *history) {
		h.forget(1)
		h.wait(faultBegin(0), faultBegin(0).Add(80*time.Second))
	}, "I9", -1, "relay-kill of relay1"},
	{"a recovery that took too long", func(h *history) { h.timeline[2].At = h.timeline[2].At.Add(time.Minute) }, "I9", 63, "waited for 63 s"},
	{"messages that wait in the end", func(h *history) { h.wait(h.run.Healed, h.run.End) }, "I9", -1, "until the end"},
	{"a message held up by the flood of another tenant", func(h *history) { h.flood(11 * time.Second) }, "I9", -1, "beside the flood"},
	{"a deadlock", func(h *history) {
		for i := range h.samples[50:] {
			h.samples[50+i].Database.Deadlocks++
		}
	}, "I10", 1, "1 deadlocks"},
	{"a deadlock after the server was restarted", func(h *history) {
		for i := range h.samples[50:] {
			h.samples[50+i].Database.Deadlocks = 1
		}
	}, "I10", 1, "1 deadlocks"},
	{"an open transaction", func(h *history) { h.samples[10].Database.IdleSeconds = 1.2 }, "I10", 1, "idle in a transaction"},
	{"producers that wait for relays", func(h *history) { h.samples[10].Database.LockWaits = 2 }, "I10", 1, "waited for a lock"},
	{"counts that do not add up", func(h *history) {
		tally := h.run.Tallies["nats"]
		tally.Sent--
		h.run.Tallies["nats"] = tally
	}, "I11", 1, "nats"},
	{"a message that the product does not know", func(h *history) {
		tally := h.run.Tallies["nats"]
		tally.Sent--
		tally.Inserted--
		h.run.Tallies["nats"] = tally
	}, "I11", 1, "the ledger"},
	{"a discard that nobody did", func(h *history) { h.dead[2].Actor = "" }, "I11", 1, "nobody knows"},
	{"a leak of goroutines", func(h *history) {
		h.grow(func(p *record.Process, n int) { p.Goroutines += n })
	}, "I12", 1, "goroutines grew"},
	{"a leak of files", func(h *history) { h.grow(func(p *record.Process, n int) { p.Files += n }) }, "I12", 1, "open files grew"},
	{"a leak of memory", func(h *history) { h.grow(func(p *record.Process, n int) { p.RSS += int64(n) << 20 }) }, "I12", 1, "bytes of memory grew"},
	{"a cause that is named late", func(h *history) { h.name(11) }, "I13", 11, "no status or doctor said why"},
	{"a cause that is never named", func(h *history) {
		h.timeline = slices.DeleteFunc(h.timeline, func(e record.Event) bool { return e.Phase == record.Named })
		h.timeline[3*(brokerFault-1)+1].At = faultBegin(2).Add(14 * time.Second)
	}, "I13", 13, "kafka accepted nothing"},
	{"a message that waits for nothing", func(h *history) {
		for i := range h.samples[50:53] {
			h.samples[50+i].Waiting.Silent = []string{"kafka k1: seq 7 waiting"}
		}
	}, "I14", 1, "seq 7 waiting"},
	{"a shard that stands still", func(h *history) { h.stand(faultBegin(0).Add(20*time.Second), 70*time.Second) }, "I14", 1, "kafka/2 had messages"},
	{"a shard that stands still after a fault", func(h *history) { h.stand(faultBegin(2), 80*time.Second) }, "I14", 1, "kafka/2 had messages"},
	{"a shard that stands still while another destination is down", func(h *history) {
		h.timeline[3*(brokerFault-1)].Touches = []string{"nats"}
		h.stand(faultBegin(2).Add(-30*time.Second), 70*time.Second)
	}, "I14", 1, "kafka/2 had messages"},
	{"a dead letter without an error", func(h *history) { h.bury(record.DeadLetter{Attempts: 3}) }, "I15", 1, "without an error"},
	{"a dead letter after one attempt", func(h *history) { h.bury(record.DeadLetter{Attempts: 1, Error: "no"}) }, "I15", 1, "after 1 attempts of 3"},
	{"a dead letter of relays that nobody killed", func(h *history) { h.bury(record.DeadLetter{Error: "relay: " + crashes + " (2 times)"}) }, "I15", 1, crashes},
}

// Every invariant detects its violation, and no other invariant is reported as broken.
func TestPlantedViolationsAreFound(t *testing.T) {
	found := map[string]bool{}
	for _, p := range plants {
		found[p.id] = true
		t.Run(p.id+" "+p.name, func(t *testing.T) {
			h := newHistory(3, 1500)
			p.plant(h)
			v := h.check(t)
			for _, f := range v.Findings {
				switch {
				case f.ID != p.id && f.State == OK:
				case f.ID != p.id && allowedBeside(p, f):
				case f.ID != p.id:
					t.Errorf("%s is %s: %v", f.ID, f.State, f.Examples)
				case f.State != Broken:
					t.Errorf("not found: %+v", f)
				case p.figure >= 0 && f.Figure != p.figure:
					t.Errorf("figure %v, want %v: %v", f.Figure, p.figure, f.Examples)
				case !strings.Contains(strings.Join(f.Examples, "\n"), p.says):
					t.Errorf("no example says %q: %q", p.says, f.Examples)
				case len(f.Examples) > mostExamples:
					t.Errorf("%d examples", len(f.Examples))
				}
			}
			if len(v.Warnings) > 0 {
				t.Errorf("warnings: %v", v.Warnings)
			}
		})
	}
	for i := range 15 {
		if id := fmt.Sprintf("I%d", i+1); !found[id] {
			t.Errorf("nothing was planted for %s", id)
		}
	}
}

// allowedBeside reports that a message lost although the product reports it as sent also makes its
// counts wrong.
func allowedBeside(p planted, f Finding) bool { return p.id == "I1" && f.ID == "I11" }

// Faults explain what they may cause.
func TestWhatFaultsExplain(t *testing.T) {
	for name, plant := range map[string]func(*history){
		"duplicate after a kill": func(h *history) { h.again("nats", faultBegin(0).Add(17*time.Second)) },
		"duplicate before a late recovery": func(h *history) {
			h.timeline[2].At = faultBegin(0).Add(55 * time.Second)
			h.again("nats", faultBegin(0).Add(58*time.Second))
		},
		"duplicate after a recovery that nobody saw": func(h *history) {
			h.forget(1)
			h.again("nats", faultBegin(0).Add(39*time.Second))
		},
		"a message beside a flood":            func(h *history) { h.flood(9 * time.Second) },
		"messages without a key in any order": func(h *history) { h.swap("nats", "k4") },
		"duplicate while a broker was down":   func(h *history) { h.again("kafka", faultBegin(2).Add(5*time.Second)) },
		"remains of a broken connection":      func(h *history) { h.sendBoth("http", "k0", 10) },
		"open transaction of a paused relay":  func(h *history) { h.samples[81].Database.IdleSeconds = 5 },
		"rows lost by the database": func(h *history) {
			row := h.leases[500]
			row.At, row.Until = row.At.Add(time.Second), row.Until.Add(time.Second)
			h.leases = slices.Insert(h.leases, 501, row)
			h.timeline = append(h.timeline, record.Event{Fault: 9, At: row.At, Kind: "database-kill", Phase: record.Begin, Touches: []string{record.Database}},
				record.Event{Fault: 9, At: row.At.Add(time.Second), Kind: "database-kill", Phase: record.Heal})
		},
		"reading a position twice": func(h *history) {
			h.receipts["kafka"] = slices.Insert(h.receipts["kafka"], 30, h.receipts["kafka"][10:29]...)
		},
		"duplicates that an operator asked for": func(h *history) {
			h.replay(2)
			h.again("nats", quiet)
			h.again("nats", quiet)
			h.run.Once = []string{"nats"}
			h.receipts["nats"] = firsts(h.receipts["nats"], quiet)
		},
		"a cause that nobody could observe": func(h *history) {
			h.name(40)
			h.timeline = append(h.timeline,
				record.Event{Fault: 9, At: faultBegin(2).Add(2 * time.Second), Kind: "database-kill", Phase: record.Begin, Touches: []string{record.Database}},
				record.Event{Fault: 9, At: faultBegin(2).Add(3 * time.Second), Kind: "database-kill", Phase: record.Heal})
		},
		"a shard that stands still until soon after a fault": func(h *history) { h.stand(faultBegin(0).Add(-50*time.Second), 110*time.Second) },
		"a shard that stands still for a moment":             func(h *history) { h.stand(quiet.Add(-40*time.Second), 45*time.Second) },
		"a dead letter that was refused three times":         func(h *history) { h.bury(record.DeadLetter{Attempts: 3, Error: "500"}) },
		"a dead letter of relays that were killed": func(h *history) {
			h.samples[23].Waiting.Dead = append(h.samples[23].Waiting.Dead, record.DeadLetter{ID: "x", Feed: "kafka", Error: crashes})
		},
		"a recovery behind another fault": func(h *history) {
			h.forget(1)
			h.wait(faultBegin(0), faultBegin(0).Add(100*time.Second))
			h.timeline = append(h.timeline,
				record.Event{Fault: 9, At: faultBegin(0).Add(30 * time.Second), Kind: "net-cut", Phase: record.Begin, Touches: []string{"nats"}},
				record.Event{Fault: 9, At: faultBegin(0).Add(80 * time.Second), Kind: "net-cut", Phase: record.Heal})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(3, 1500)
			plant(h)
			if v := h.check(t); len(v.Broken()) > 0 {
				t.Error(v)
			}
		})
	}
}

func TestInversionsOfZombiesAreCountedApart(t *testing.T) {
	h := newHistory(3, 1500)
	for i, r := range h.receipts["nats"] {
		if r.At.After(faultBegin(3)) {
			h.swapFrom("nats", r.Key, i)
			break
		}
	}
	f := h.check(t).Finding("I3")
	if f.State != OK || f.Figure != 0 || !strings.Contains(f.Note, "1 more in reach of a relay that woke up") {
		t.Errorf("%+v", f)
	}
}

func TestTooManyDuplicates(t *testing.T) {
	for name, c := range map[string]Counts{
		"of the events": {Events: enoughEvents, Faults: 100, Duplicates: enoughEvents / 2000},
		"of a fault":    {Events: 1000, Faults: 2, Duplicates: 2*mostByAFault + 1},
	} {
		v := Verdict{Counts: c}
		if f := v.judgeDuplicates(nil); f.State != Broken || f.Figure != 100*c.DuplicateShare() {
			t.Errorf("%s: %+v", name, f)
		}
		v.Counts.Duplicates--
		if f := v.judgeDuplicates(nil); f.State != OK {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Duplicates are counted by destination, and those of a destination that promises once are not in
// the share of the others.
func TestDuplicatesByDestination(t *testing.T) {
	h := newHistory(3, 1500)
	before := h.check(t)
	h.run.Once = []string{"kafka"}
	h.receipts["kafka"] = slices.DeleteFunc(h.receipts["kafka"], func() func(record.Receipt) bool {
		seen := map[string]bool{}
		return func(r record.Receipt) bool { defer func() { seen[r.ID] = true }(); return seen[r.ID] }
	}())
	h.timeline[0].Kind = restoreFault
	h.again("kafka", faultBegin(0).Add(time.Second))
	v := h.check(t)
	if broken := v.Broken(); len(broken) > 0 {
		t.Errorf("broken: %v", broken)
	}
	kafka, nats := v.Destinations["kafka"], v.Destinations["nats"]
	if !kafka.Once || kafka.Duplicates != 1 || kafka.Restored != 1 || kafka.Events != before.Destinations["kafka"].Events {
		t.Errorf("kafka: %+v", kafka)
	}
	if nats.Once || nats.Duplicates != before.Destinations["nats"].Duplicates {
		t.Errorf("nats: %+v", nats)
	}
	want := float64(v.Counts.Duplicates-1) / float64(v.Counts.Events-kafka.Events)
	if share := v.Counts.DuplicateShare(); share != want {
		t.Errorf("share %v, want %v", share, want)
	}
}

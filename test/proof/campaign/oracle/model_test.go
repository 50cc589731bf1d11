package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/campaign/record"
)

// model has the same results as the oracle, computed with plain maps and without concern for
// memory.
type model struct{ lost, phantom, inverted, zombies, effectsInverted, double, undone, duplicates, unexplained, changed, rereads int64 }

func (h *history) model() (m model) {
	byID := map[string]record.Intent{}
	for _, i := range h.intents {
		byID[i.ID] = i
	}
	intended := func(x record.Message) (record.Intent, bool) {
		i, ok := byID[x.ID]
		return i, ok && i.Destination == x.Destination && i.Key == x.Key && (x.Seq == i.Seq || x.Seq == 0 && i.Unnumbered)
	}
	deadLetters := map[string]bool{}
	for _, d := range h.dead {
		deadLetters[d.ID] = true
		if _, ok := byID[d.ID]; !ok {
			m.phantom++
		}
	}

	received := map[string]bool{}
	for destination, receipts := range h.receipts {
		highest := map[string]int64{}
		positions := map[int]int64{}
		for _, r := range receipts {
			last, known := positions[r.Partition]
			old := known && r.Offset <= last
			positions[r.Partition] = max(r.Offset, last)
			i, ok := intended(r.Message)
			switch {
			case !ok:
				m.phantom++
				continue
			case old && received[r.ID]:
				m.rereads++
				continue
			case r.Sum != i.Sum:
				m.changed++
			}
			if received[r.ID] {
				m.duplicates++
				if !h.near(r.At, true, func(e record.Event) bool { return !e.Clean && e.Touch(record.Database, record.Relay, destination) }) {
					m.unexplained++
				}
				continue
			}
			received[r.ID] = true
			switch zombie := h.near(r.At, false, func(e record.Event) bool { return e.Zombie }); {
			case i.Unordered:
			case i.Seq > highest[i.Key]:
				highest[i.Key] = i.Seq
			case zombie:
				m.zombies++
			default:
				m.inverted++
			}
		}
	}

	done := map[string]map[string]bool{}
	highest := map[string]int64{}
	for _, e := range h.effects {
		i, ok := intended(e.Message)
		if !ok {
			m.phantom++
			continue
		}
		if done[e.Consumer] == nil {
			done[e.Consumer] = map[string]bool{}
		}
		name := e.Consumer + i.Destination + i.Key
		switch {
		case done[e.Consumer][e.ID]:
			m.double++
		case i.Unordered:
		case i.Seq < highest[name]:
			m.effectsInverted++
		default:
			highest[name] = i.Seq
		}
		done[e.Consumer][e.ID] = true
	}

	for _, i := range h.intents {
		if !received[i.ID] {
			if !i.Poison || !deadLetters[i.ID] {
				m.lost++
			}
			continue
		}
		for _, consumer := range h.run.Consumers[i.Destination] {
			if !done[consumer][i.ID] {
				m.undone++
			}
		}
	}
	return m
}

// near reports whether a fault that passes a test was active at a time, or was healed less than 30
// s before. With recovery, it is near until 5 s after it has recovered.
func (h *history) near(at time.Time, recovery bool, test func(record.Event) bool) bool {
	for _, b := range h.timeline {
		if b.Phase != record.Begin || !test(b) || at.Before(b.At) {
			continue
		}
		healed := slices.IndexFunc(h.timeline, func(e record.Event) bool { return e.Fault == b.Fault && e.Phase == record.Heal })
		recovered := slices.IndexFunc(h.timeline, func(e record.Event) bool { return e.Fault == b.Fault && e.Phase == record.Recovered })
		if recovery && healed >= 0 && recovered >= 0 {
			if at.Before(h.timeline[recovered].At.Add(5 * time.Second)) {
				return true
			}
			continue
		}
		if healed < 0 || at.Before(h.timeline[healed].At.Add(30*time.Second)) {
			return true
		}
	}
	return false
}

// spoil makes random changes to a history.
func (h *history) spoil(random *rand.Rand) {
	destinations := []string{"http", "kafka", "nats"}
	for range random.IntN(12) {
		destination := destinations[random.IntN(3)]
		receipts := h.receipts[destination]
		i, j := random.IntN(len(receipts)), random.IntN(len(receipts))
		e, f := random.IntN(len(h.effects)), random.IntN(len(h.effects))
		at := begin.Add(time.Duration(random.IntN(600)) * time.Second)
		switch random.IntN(12) {
		case 0:
			h.receipts[destination] = slices.Delete(receipts, i, i+1)
		case 1:
			h.again(destination, at)
		case 2:
			receipts[i].Message, receipts[j].Message, receipts[i].Sum, receipts[j].Sum =
				receipts[j].Message, receipts[i].Message, receipts[j].Sum, receipts[i].Sum
		case 3:
			receipts[i].Sum++
		case 4:
			receipts[i].ID += "x"
		case 5:
			receipts[i].Seq++
		case 6:
			h.receipts[destination] = slices.Insert(receipts, i, receipts[min(i, j):i]...) // read again, or out of order
		case 7:
			h.effects = slices.Delete(h.effects, e, e+1)
		case 8:
			h.effects[e].Message = h.effects[f].Message
		case 9:
			h.effects[e].Key = "k3"
		case 10:
			h.timeline[3*random.IntN(5)+random.IntN(2)].At = at
		case 11:
			h.dead[random.IntN(len(h.dead))].ID += "y"
		}
	}
}

// The bitmaps and the plain maps give the same results, however a history is changed.
func TestOracleAgreesWithPlainMaps(t *testing.T) {
	seen := model{}
	seeds := uint64(60)
	if need.IsLong() {
		seeds = 2000
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 1))
		h := newHistory(seed, 100+random.IntN(200))
		h.samples, h.leases, h.operations = nil, nil, nil
		if len(h.dead) == 0 {
			continue
		}
		h.spoil(random)
		want := h.model()
		dir := h.write(t)
		v, err := Check(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := model{
			lost: int64(v.Finding("I1").Figure), phantom: int64(v.Finding("I2").Figure),
			effectsInverted: int64(v.Finding("I4").Figure), changed: int64(v.Finding("I7").Figure),
			duplicates: v.Counts.Duplicates, unexplained: v.Duplicates[""], rereads: v.Counts.Rereads,
		}
		got.inverted, got.zombies = inversions(t, dir)
		_, _ = fmt.Sscanf(v.Finding("I5").Note, fmt.Sprintf("of %d effects; %%d double, %%d missing", len(h.effects)), &got.double, &got.undone)
		if got != want {
			t.Fatalf("seed %d:\n got %+v\nwant %+v\n%s", seed, got, want, v)
		}
		seen.add(want)
	}
	t.Logf("in all: %+v", seen)
	if seen.lost*seen.phantom*seen.inverted*seen.zombies*seen.effectsInverted*seen.double*seen.undone*seen.unexplained*seen.changed*seen.rereads == 0 {
		t.Errorf("something never happened: %+v", seen)
	}
}

func (m *model) add(o model) {
	for _, pair := range [][2]*int64{
		{&m.lost, &o.lost}, {&m.phantom, &o.phantom}, {&m.inverted, &o.inverted}, {&m.zombies, &o.zombies},
		{&m.effectsInverted, &o.effectsInverted}, {&m.double, &o.double}, {&m.undone, &o.undone}, {&m.duplicates, &o.duplicates},
		{&m.unexplained, &o.unexplained}, {&m.changed, &o.changed}, {&m.rereads, &o.rereads},
	} {
		*pair[0] += *pair[1]
	}
}

// inversions are those of first receipts alone; the finding includes overlaps of duplicates.
func inversions(t *testing.T, dir string) (inverted, zombies int64) {
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := readFaults(r)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := readLedger(r, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, destination := range r.Destinations() {
		a, err := readReceipts(r, destination, false, l, f)
		if err != nil {
			t.Fatal(err)
		}
		inverted += a.inverted.count
		zombies += a.zombies
	}
	return inverted, zombies
}

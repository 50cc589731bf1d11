package oracle

import (
	"slices"
	"testing"
)

func TestCleanHistoriesAreClean(t *testing.T) {
	for seed := range uint64(5) {
		h := newHistory(seed, 3000)
		v := h.check(t)
		if len(v.Findings) != 15 {
			t.Fatalf("%d findings", len(v.Findings))
		}
		for i, f := range v.Findings {
			if f.State != OK {
				t.Errorf("seed %d: finding %d: %+v", seed, i+1, f)
			}
		}
		if v.Interrupted || len(v.Warnings) > 0 {
			t.Errorf("seed %d: %+v", seed, v)
		}
		c := v.Counts
		if c.Events != 3000 || c.Minutes != minutes || c.Faults != len(clean) || c.Keys != 18 || c.Poison != int64(len(h.dead)) {
			t.Errorf("seed %d: counts %+v", seed, c)
		}
		if c.Duplicates == 0 || v.Duplicates["relay-kill"] != c.Duplicates {
			t.Errorf("seed %d: %d duplicates, by kind %v", seed, c.Duplicates, v.Duplicates)
		}
		if len(v.Recoveries) != len(clean) || v.Recoveries[0].Seconds != 3 || v.Faults["relay-pause"] != 1 {
			t.Errorf("seed %d: recoveries %+v, faults %v", seed, v.Recoveries, v.Faults)
		}
	}
}

func TestVerdictIsKeptBesideTheFiles(t *testing.T) {
	dir := newHistory(1, 500).write(t)
	v, err := Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Save(dir); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(dir)
	if err != nil || loaded.String() != v.String() {
		t.Fatalf("%v\n%v\n%v", err, loaded, v)
	}
	if again, err := Check(dir); err != nil || len(again.Warnings) > 0 {
		t.Fatalf("the verdict counts as a change: %v %v", err, again.Warnings)
	}
}

// Data that were not recorded are "not checked", even if everything else is fine.
func TestMissingFilesAreNotChecked(t *testing.T) {
	messages := []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I11"}
	for _, c := range []struct {
		name string
		lack func(*history)
		ids  []string
	}{
		{"intents", func(h *history) { h.without = []string{"intents"} }, messages},
		{"empty intents", func(h *history) { h.intents = nil }, messages},
		{"receipts", func(h *history) { h.without = []string{"receipts-http", "receipts-kafka", "receipts-nats"} },
			[]string{"I1", "I2", "I3", "I5", "I6", "I7", "I11"}},
		{"effects", func(h *history) { h.without = []string{"effects"} }, []string{"I4", "I5"}},
		{"dead", func(h *history) { h.without = []string{"dead"} }, []string{"I11"}},
		{"leases", func(h *history) { h.without = []string{"leases"} }, []string{"I8"}},
		{"empty leases", func(h *history) { h.leases = nil }, []string{"I8"}},
		{"samples", func(h *history) { h.samples = nil }, []string{"I9", "I10", "I12", "I14", "I15"}},
		{"what waits", func(h *history) {
			for i := range h.samples {
				h.samples[i].Waiting = nil
			}
		}, []string{"I14", "I15"}},
		{"attempts", func(h *history) { h.run.Attempts = 0 }, []string{"I15"}},
		{"a destination that refuses", func(h *history) {
			for i := range h.timeline {
				h.timeline[i].Refuses = ""
			}
		}, []string{"I13"}},
		{"backlog", func(h *history) {
			for i := range h.samples {
				h.samples[i].Backlog = nil
			}
		}, []string{"I9"}},
		{"database", func(h *history) {
			for i := range h.samples {
				h.samples[i].Database = nil
			}
		}, []string{"I10"}},
		{"processes", func(h *history) {
			for i := range h.samples {
				h.samples[i].Processes = nil
			}
		}, []string{"I12"}},
		{"tallies", func(h *history) { h.run.Tallies = nil }, []string{"I11"}},
		{"one tally", func(h *history) { delete(h.run.Tallies, "nats") }, []string{"I11"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(7, 1000)
			c.lack(h)
			v := h.check(t)
			var ids []string
			for _, f := range v.NotChecked() {
				ids = append(ids, f.ID)
				if f.Note == "" {
					t.Errorf("%s does not say why", f.ID)
				}
			}
			if !slices.Equal(ids, c.ids) {
				t.Errorf("not checked: %v, want %v", ids, c.ids)
			}
		})
	}
}

package oracle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// An interrupted run did not wait for everything to arrive, so missing messages are not reported.
// Order and content still are.
func TestInterruptedRun(t *testing.T) {
	h := newHistory(5, 1000)
	h.run.End, h.run.Healed = time.Time{}, time.Time{}
	h.receipts["kafka"] = h.receipts["kafka"][:100]
	h.receipts["http"][30].Sum++
	v := h.check(t)
	if !v.Interrupted || v.Finding("I1").State != NotChecked || v.Finding("I9").State != NotChecked || v.Finding("I7").State != Broken {
		t.Error(v)
	}
	if v.Counts.Minutes < minutes-1 || v.Counts.Minutes > minutes {
		t.Errorf("%v minutes", v.Counts.Minutes)
	}
}

// Only the faults and samples exist: the process was killed long before the ledger was written.
func TestRunThatWasKilled(t *testing.T) {
	h := newHistory(5, 1000)
	dir := h.write(t)
	for _, name := range []string{"run.json", "intents.gz", "effects.gz", "dead.gz"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"samples.jsonl", "timeline.jsonl", "receipts-kafka.gz"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			err = os.Truncate(filepath.Join(dir, name), info.Size()-9)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	v, err := Check(dir)
	if err != nil || len(v.Broken()) > 0 || v.Finding("I8").State != OK || v.Counts.Receipts == 0 {
		t.Errorf("%v\n%v", err, v)
	}
}

// Files that were changed after the run cause a warning, and files that cannot be checked an error.
func TestFilesThatAreNotAsTheyWere(t *testing.T) {
	dir := newHistory(5, 500).write(t)
	if err := os.Truncate(filepath.Join(dir, "intents.gz"), 3000); err != nil {
		t.Fatal(err)
	}
	v, err := Check(dir)
	if err != nil || !slices.Equal(v.Warnings, []string{"changed since the run: intents.gz"}) || v.Finding("I2").State != NotChecked {
		t.Errorf("%v\n%v", err, v)
	}

	for name, spoil := range map[string]func(*history){
		"has a hole":        func(h *history) { h.intents = slices.Delete(h.intents, 10, 11) },
		"twice":             func(h *history) { h.intents = append(h.intents, h.intents[10]) },
		"not in the order":  func(h *history) { h.effects[3].N = 0 },
		"there is no run":   nil,
		"invalid character": nil,
	} {
		h := newHistory(5, 500)
		if spoil != nil {
			spoil(h)
		}
		dir := h.write(t)
		switch name {
		case "there is no run":
			dir = t.TempDir()
		case "invalid character":
			if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("?"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Check(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q: %v", name, err)
		}
	}
}

// The ledger may be in any order: only the numbers matter.
func TestLedgerInAnyOrder(t *testing.T) {
	h := newHistory(5, 1000)
	slices.Reverse(h.intents)
	if v := h.check(t); len(v.Broken())+len(v.NotChecked()) > 0 {
		t.Error(v)
	}
}

// A different message at a known position casts doubt on the broker, or on the collector.
func TestPositionsThatAreUsedAgain(t *testing.T) {
	h := newHistory(5, 1000)
	all := h.receipts["nats"]
	last := len(all) - 1
	for i := range all[:last] {
		if all[i].Partition == all[last].Partition {
			all[last].Offset = all[i].Offset
			break
		}
	}
	if v := h.check(t); len(v.Warnings) != 1 || !strings.Contains(v.Warnings[0], "nats: 1 messages under positions") || len(v.Broken()) > 0 {
		t.Error(v)
	}
}

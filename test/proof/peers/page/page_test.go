package page

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postrider/postrider/test/proof/peers/result"
)

// sample has three repetitions of two peers; the third of river has failed.
func sample() *result.Run {
	run := &result.Run{Machines: []result.Machine{{CPUs: 2}}, Peers: []result.Peer{{Name: "postrider", Version: "commit 1"}, {Name: "river", Version: "v2"}}}
	for i := 1; i <= 3; i++ {
		n := float64(i)
		for _, c := range []result.Cell{
			{Peer: "bare", Work: result.Bare, CommittedPerSecond: 9000},
			{Peer: "postrider", Broker: "nats", Work: result.Sustained, DeliveredPerSecond: 7000 + n, CommittedPerSecond: 7000},
			{Peer: "postrider", Broker: "nats", Work: result.Drain, Delivered: 1e6, DeliveredPerSecond: 50000 * n, RelayCPU: 5, DatabaseCPU: 9},
			{Peer: "postrider", Broker: "nats", Work: result.Latency, Delivered: 1e6, P50: 3, P99: 8 + n},
			{Peer: "postrider", Broker: "nats", Work: result.HeldLatency, P50: 3, P99: 9, Held: 55},
			{Peer: "postrider", Broker: "nats", Work: result.HeldSustained, DeliveredPerSecond: 6900, Held: 60},
			{Peer: "postrider", Broker: "nats", Work: result.Order, Committed: 10000},
			{Peer: "river", Broker: "nats", Work: result.Sustained, DeliveredPerSecond: 2000 + n, CommittedPerSecond: 2500},
			{Peer: "river", Broker: "nats", Work: result.Latency, P50: 2, P99: 20},
			{Peer: "river", Broker: "nats", Work: result.HeldSustained, DeliveredPerSecond: 70, Held: 600},
			{Peer: "river", Broker: "nats", Work: result.Order, Committed: 10000, Inversions: 123},
		} {
			c.Repetition = i
			if c.Peer == "river" && c.Work == result.Sustained && i == 3 {
				c.Error = "it ended by itself"
			}
			run.Cells = append(run.Cells, c)
		}
	}
	return run
}

func TestText(t *testing.T) {
	text := Text(sample(), "plots")
	for _, want := range []string{
		"3 repetitions; figures are medians",
		"| **postrider** | 7,002 (7,001–7,003) |", // median and range
		"| river | 2,002 (2,001–2,002) |",         // without the failed repetition
		"they commit 9,000.",
		"for 60 seconds in the end",
		"open for 600 seconds (1 repetition)",
		"| river | 10,000 | 123 | 0 | 0 | 0 |",
		"| p50, NATS | 3.0 | river 2.0 |",     // where a peer is better
		"| **postrider** | 0 | 0 | 0 | 3.9 |", // hours for a billion: 5 s and 9 s for a million
		"* repetition 3, sustained, nats, river: it ended by itself",
		"![Messages a second of a backlog, by peer and broker](plots/drain.svg)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Errorf("figures that are none in\n%s", text)
	}
}

// TestPlots checks that every plot is well-formed, without scripts, and readable on dark pages.
func TestPlots(t *testing.T) {
	plots := Plots(sample())
	if len(plots) != 6 {
		t.Errorf("%d plots", len(plots))
	}
	for name, svg := range plots {
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if strings.Contains(svg, "<script") || !strings.Contains(svg, "prefers-color-scheme: dark") || strings.Contains(svg, "NaN") {
			t.Errorf("%s:\n%s", name, svg)
		}
	}
}

func TestFill(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("before\n"+begin+"old\n"+end+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Fill(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); string(text) != "before\n"+begin+"\nnew\n\n"+end+"after\n" {
		t.Errorf("%s", text)
	}
	if err := Fill(filepath.Join("testdata", "none.md"), ""); err == nil {
		t.Error("a page that does not exist was filled")
	}
}

// TestPublished checks that the published page and its plots match the published results.
func TestPublished(t *testing.T) {
	files, err := filepath.Glob("../../../../docs/comparison/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("nothing is published: make peers")
	}
	run, err := result.Read(files...)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(copied, have, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Fill(copied, Text(run, "comparison")); err != nil {
		t.Fatal(err)
	}
	if want, _ := os.ReadFile(copied); string(want) != string(have) {
		t.Error("docs/comparison.md is not what the results say: make peers-table")
	}
	for name, want := range Plots(run) {
		if have, _ := os.ReadFile(filepath.Join("../../../../docs/comparison", name)); string(have) != want {
			t.Errorf("docs/comparison/%s is not what the results say: make peers-table", name)
		}
	}
}

package report

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/oracle"
	"github.com/postrider/postrider/test/proof/campaign/record"
)

var update = flag.Bool("update", false, "write what the report looks like as what is expected")

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// madeUp returns a run with some faults of every kind, a backlog after each, and a period in which
// the database could not be queried.
func madeUp(name string, seed uint64, minutes int) Run {
	random := rand.New(rand.NewPCG(seed, 0))
	end := begin.Add(time.Duration(minutes) * time.Minute)
	run := Run{Run: record.Run{
		ID: name, Seed: int64(seed), Commit: "0123456789abcdef0123", Begin: begin, End: end,
		Versions: map[string]string{"postgres": "18.1", "nats": "2.12"}, Flags: map[string]string{"rate": "2000", "dir": "/some/where", "keep": "false", "only": ""},
		Hashes: map[string]string{"intents.gz": strings.Repeat("0f", 32), "timeline.jsonl": strings.Repeat("a5", 32)},
	}}
	v := &run.Verdict
	*v = oracle.Verdict{Run: name, Faults: map[string]int{}, Duplicates: map[string]int64{}}
	v.Counts = oracle.Counts{Minutes: float64(minutes), Events: 1_234_567, Receipts: 1_234_667, Effects: 1_200_000}
	for i := range 12 {
		v.Findings = append(v.Findings, oracle.Finding{ID: fmt.Sprintf("I%d", i+1), Name: fmt.Sprintf("name %d", i+1), State: oracle.OK, Budget: "0"})
	}
	kinds := []record.Event{
		{Kind: "relay-kill", Touches: []string{record.Relay}}, {Kind: "database-kill", Touches: []string{record.Database}},
		{Kind: "broker-kill", Touches: []string{"kafka"}}, {Kind: "restore", Touches: []string{record.Database, record.Relay}},
		{Kind: "consumer-kill", Touches: []string{record.Consumer}}, {Kind: "http-500", Touches: []string{"http"}}, {Kind: "statistics-reset"},
	}
	var backlog int64
	for at := begin; at.Before(end); at = at.Add(5 * time.Second) {
		backlog = max(0, backlog-400)
		if random.IntN(4) == 0 {
			e := kinds[random.IntN(len(kinds))]
			e.Fault, e.At, e.Phase = len(run.Timeline)+1, at, record.Begin
			healed := at.Add(time.Duration(random.IntN(20)) * time.Second)
			run.Timeline = append(run.Timeline, e, record.Event{Fault: e.Fault, Kind: e.Kind, At: healed, Phase: record.Heal})
			v.Faults[e.Kind]++
			v.Counts.Faults++
			backlog += random.Int64N(3000)
			seconds := random.ExpFloat64() * 4
			v.Recoveries = append(v.Recoveries, oracle.Recovery{Fault: e.Fault, Kind: e.Kind, Seconds: seconds, Clear: seconds / 2})
			if e.Kind == "relay-kill" || e.Kind == "database-kill" {
				v.Duplicates[e.Kind] += random.Int64N(40)
			}
		}
		s := record.Sample{At: at, Backlog: &record.Backlog{Messages: backlog, OldestSeconds: float64(backlog) / 300}}
		if i := at.Sub(begin); i > 2*time.Minute && i < 3*time.Minute {
			s.Backlog = nil
		}
		run.Samples = append(run.Samples, s)
	}
	for _, n := range v.Duplicates {
		v.Counts.Duplicates += n
	}
	return run
}

// broken returns a run with a broken invariant.
func broken() Run {
	run := madeUp("second <run> & more", 2, 30)
	run.Dirty = true
	run.Verdict.Findings[0] = oracle.Finding{ID: "I1", Name: "name 1", State: oracle.Broken, Figure: 1, Budget: "0", Note: "of 1", Examples: []string{"kafka k1 7 was not received"}}
	run.Verdict.Findings[7] = oracle.Finding{ID: "I8", Name: "name 8", State: oracle.NotChecked, Budget: "0", Note: "leases.gz was not written"}
	run.Verdict.Duplicates[""] = 3
	run.Verdict.Destinations = map[string]oracle.Destination{
		"nats": {Once: true, Events: 120_000, Duplicates: 2, Restored: 2}, "http": {Events: 60_000, Duplicates: 30},
	}
	run.Verdict.Warnings = []string{"changed since the run: dead.gz"}
	return run
}

func TestGolden(t *testing.T) {
	files := Files("page", madeUp("first", 1, 10), broken())
	if len(files) != 5 {
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		path := filepath.Join("testdata", f.Name)
		if *update {
			if err := os.WriteFile(path, f.Text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != string(f.Text) {
			t.Errorf("%s has changed: look at it, and run the test with -update", f.Name)
		}
	}
}

// Figures are well-formed, contain no scripts and no external resources, have a text description,
// and define colors for both themes.
func TestPicturesAreSelfContained(t *testing.T) {
	elsewhere := regexp.MustCompile(`<script|href|@import|url\(|javascript:|on[a-z]+=`)
	for _, f := range Files("page", madeUp("first", 1, 10), broken(), Run{}) {
		if !strings.HasSuffix(f.Name, ".svg") {
			continue
		}
		text := string(f.Text)
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		if found := elsewhere.FindString(text); found != "" {
			t.Errorf("%s has %q", f.Name, found)
		}
		for _, part := range []string{"<title", "<desc", `role="img"`, "prefers-color-scheme: dark"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %s", f.Name, part)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s has a number that is none", f.Name)
		}
	}
}

// A broken invariant in any run is reported at the top of the page.
func TestPageTellsWhatIsWrong(t *testing.T) {
	page := func(runs ...Run) string {
		files := Files("page", runs...)
		return string(files[len(files)-1].Text)
	}
	good := page(madeUp("first", 1, 10))
	if !strings.Contains(good, "No invariant was broken.") || strings.Contains(good, "Not checked") {
		t.Error(good)
	}
	bad := page(madeUp("first", 1, 10), broken())
	for _, want := range []string{
		"**Broken: I1.**", "Not checked in every run: I8.", "**broken** in 1 of 2 runs", "ok, not checked in 1 of 2 runs", "kafka k1 7 was not received",
		"2,469,134", "changed since the run", "40 minutes", "| (no fault) | 0 | 3 |",
	} {
		if !strings.Contains(bad, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Runs with too few events to check separately may have too many duplicates together.
func TestTooManyDuplicatesTogether(t *testing.T) {
	small := madeUp("small", 1, 10)
	small.Verdict.Counts.Events, small.Verdict.Counts.Duplicates = 400_000, 300
	files := Files("page", small, small)
	if text := string(files[len(files)-1].Text); !strings.Contains(text, "**Broken: I6.**") || !strings.Contains(text, "**broken** by all runs together") {
		t.Error(text)
	}
}

// The files of a run are sufficient for a report, with or without a verdict.
func TestLoadAndWrite(t *testing.T) {
	dir := t.TempDir()
	source := madeUp("first", 1, 10)
	w, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range source.Timeline {
		err = errors.Join(err, w.Event(e))
	}
	for _, x := range source.Samples {
		err = errors.Join(err, w.Sample(x))
	}
	if err = errors.Join(err, w.Run(source.Run), w.Close()); err != nil {
		t.Fatal(err)
	}
	run, err := Load(dir)
	if err != nil || len(run.Timeline) != len(source.Timeline) || len(run.Samples) != len(source.Samples) || run.Verdict.Finding("I1").State != oracle.NotChecked {
		t.Fatalf("%v\n%v", err, run.Verdict)
	}
	if err := source.Verdict.Save(dir); err != nil {
		t.Fatal(err)
	}
	if run, err = Load(dir); err != nil || run.Verdict.Finding("I1").State != oracle.OK {
		t.Fatalf("%v\n%v", err, run.Verdict)
	}
	page := filepath.Join(t.TempDir(), "reliability.md")
	if err := Write(page, run); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, picture := range regexp.MustCompile(`\]\((.*?)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(page), picture[1])); err != nil {
			t.Error(err)
		}
	}
}

// A kept summary gives the same page, and contains no data of the machine.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	runs := []Run{madeUp("first", 1, 10), madeUp("second", 2, 5)}
	runs[1].Begin = runs[1].Begin.Add(time.Hour)
	for _, run := range runs {
		run.Timeline[0].Detail = "/some/where"
		if err := Keep(dir, run); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := Kept(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, f := range Files("page", kept...) {
		got[f.Name] = string(f.Text)
	}
	for _, want := range Files("page", runs...) {
		if text, ok := got[want.Name]; text != string(want.Text) && (ok || !strings.Contains(want.Name, "-timeline-")) { // these already exist
			t.Errorf("%s differs", want.Name)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "first.json"))
	if err != nil || strings.Contains(string(text), "/some/where") {
		t.Errorf("%v; a path of the machine was kept", err)
	}
}

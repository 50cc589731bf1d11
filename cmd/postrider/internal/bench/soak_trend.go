package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Trend is the development of one figure in the evaluated part of the run.
type Trend struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	From   float64 `json:"from"`   // start of the part, in seconds
	Median float64 `json:"median"` // in that part
	Growth float64 `json:"growth"` // over the part, along the line through its samples
	Limit  float64 `json:"limit"`  // maximum growth: a share of the value at the start, plus an allowance
	Flat   bool    `json:"flat"`
	Why    string  `json:"why,omitempty"` // why it was not evaluated
}

// series is a figure of the samples, with limits for its growth.
type series struct {
	name, unit string
	value      func(*SoakSample) float64
	share      float64       // of the value at the start
	allowance  float64       // on top
	settles    time.Duration // time until it is filled for the first time
	kind       seriesKind
}

// seriesKind is what a figure depends on.
type seriesKind int

const (
	ours    seriesKind = iota
	latency            // also depends on the machine: evaluated only if the machine has not become slower
	machine            // of the machine only: not evaluated, but decides about latencies
)

// soakSeries returns the figures with their limits. Memory may grow by a tenth and 16 MB, because
// garbage collection makes it fluctuate.
func soakSeries(plan *SoakPlan) []series {
	const mb = 1 << 20
	ring := plan.Ring()
	turn := time.Duration(ring.Slots) * ring.Period
	return []series{
		{"the machine alone, a hash and an fsync", "ms", func(s *SoakSample) float64 { return s.Machine }, 0.25, 0.5, 0, machine},
		{"memory of the relay", "bytes", func(s *SoakSample) float64 { return float64(s.RelayMemory) }, 0.10, 16 * mb, 0, ours},
		{"goroutines of the relay", "", func(s *SoakSample) float64 { return float64(s.RelayGoroutines) }, 0.05, 5, 0, ours},
		{"files of the relay", "", func(s *SoakSample) float64 { return float64(s.RelayFiles) }, 0.05, 5, 0, ours},
		{"memory of the consumers", "bytes", func(s *SoakSample) float64 { return float64(s.Memory) }, 0.10, 16 * mb, 0, ours},
		{"goroutines of the consumers", "", func(s *SoakSample) float64 { return float64(s.Goroutines) }, 0.05, 5, 0, ours},
		{"files of the consumers", "", func(s *SoakSample) float64 { return float64(s.Files) }, 0.05, 5, 0, ours},
		{"commit to effect, median", "ms", func(s *SoakSample) float64 { return s.P50 }, 0.25, 2, 0, latency},
		{"commit to effect, 99 %", "ms", func(s *SoakSample) float64 { return s.P99 }, 0.50, 10, 0, latency},
		{"size of the log", "bytes", func(s *SoakSample) float64 { return float64(s.Log) }, 0.15, 8 * mb, turn + ring.Period, ours},
		{"size of the inbox", "bytes", func(s *SoakSample) float64 { return float64(s.Inbox) }, 0.15, 8 * mb, 11 * plan.inboxPeriod(), ours},
		{"rows of the ledger", "", func(s *SoakSample) float64 { return float64(s.LedgerRows) }, 0.10, 1000, ledgerKept, ours},
	}
}

// ledgerKept is the retention of old rows of the ledger, including the time until they are removed.
const ledgerKept = 12 * time.Minute

// fewest is the minimum number of samples for a line.
const fewest = 8

// evaluate compares the growth in the second half of the samples with the limits. For a table it
// starts later if the table has not been filled by then.
func (r *SoakResult) evaluate(plan *SoakPlan) {
	r.Flat = r.Missing == 0
	r.Trends = nil
	slower := false // set by the first series
	for _, s := range soakSeries(plan) {
		from := max(plan.For/2, s.settles).Seconds()
		at := slices.IndexFunc(r.Samples, func(x SoakSample) bool { return x.At >= from })
		t := Trend{Name: s.name, Unit: s.unit, From: rounded(from, 1)}
		if at < 0 || len(r.Samples)-at < fewest {
			t.Why = fmt.Sprintf("not evaluated: it is filled after %s, and the run was too short", s.settles)
			r.Trends = append(r.Trends, t)
			continue
		}
		t.Median, t.Growth = growth(r.Samples[at:], s.value)
		t.Limit = rounded((t.Median-max(t.Growth, 0)/2)*s.share+s.allowance, 3)
		t.Flat = t.Growth <= t.Limit
		switch {
		case s.kind == machine && !t.Flat:
			slower = true
			t.Why = fmt.Sprintf("it has become slower, by %s at a median of %s", t.Amount(t.Growth), t.Amount(t.Median))
		case s.kind == latency && slower:
			t.Why = fmt.Sprintf("not evaluated, because the machine was slower: by %s at a median of %s", t.Amount(t.Growth), t.Amount(t.Median))
		default:
			r.Flat = r.Flat && t.Flat
		}
		r.Trends = append(r.Trends, t)
	}
}

// growth returns the median of a figure, and its growth along a line through all samples. The slope
// of the line is the median of the slopes between all pairs of samples, so outliers do not affect
// it.
func growth(samples []SoakSample, value func(*SoakSample) float64) (middle, rise float64) {
	values := make([]float64, len(samples))
	var slopes []float64
	for i := range samples {
		values[i] = value(&samples[i])
		for j := range i {
			slopes = append(slopes, quotient(values[i]-values[j], samples[i].At-samples[j].At))
		}
	}
	span := samples[len(samples)-1].At - samples[0].At
	return rounded(median(values), 3), rounded(median(slopes)*span, 3)
}

// Faults returns all missing effects and limits exceeded.
func (r *SoakResult) Faults() (faults []string) {
	if r.Missing > 0 {
		faults = append(faults, fmt.Sprintf("%d messages have had no effect", r.Missing))
	}
	for _, t := range r.Trends {
		if t.Why == "" && !t.Flat {
			faults = append(faults, fmt.Sprintf("%s has grown by %s, more than %s", t.Name, amount(t.Growth, t.Unit), amount(t.Limit, t.Unit)))
		}
	}
	return faults
}

// Table implements [Result].
func (r SoakResult) Table() [][]string {
	rows := [][]string{
		{"full rate, commit to effect", whole(r.Full), "messages/s"},
		{"rate of the run", whole(float64(r.Rate)), fmt.Sprintf("messages/s, %.0f %%", r.Load*100)},
		{"length", whole(r.Seconds), "s"},
		{"messages", count(r.Messages), ""},
		{"without their effect", count(r.Missing), ""},
		{},
		{"second half", "median", "growth", "limit", "verdict"},
	}
	for _, t := range r.Trends {
		if t.Why != "" {
			rows = append(rows, []string{t.Name, "-", "-", "-", t.Why})
			continue
		}
		result := "flat"
		if !t.Flat {
			result = "GROWS"
		}
		rows = append(rows, []string{t.Name, amount(t.Median, t.Unit), amount(t.Growth, t.Unit), amount(t.Limit, t.Unit), result})
	}
	result := "flat"
	if !r.Flat {
		result = "NOT FLAT"
	}
	return append(rows, []string{}, []string{"verdict", result})
}

// Amount formats a figure of the trend with its unit.
func (t *Trend) Amount(v float64) string { return amount(v, t.Unit) }

// amount formats a figure with its unit.
func amount(v float64, unit string) string {
	if unit == "bytes" {
		return millis(v/(1<<20)) + " MiB"
	}
	return strings.TrimSpace(millis(v) + " " + unit)
}

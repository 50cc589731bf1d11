package bench

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestEnqueueFigures computes with turns of known cost, one of them disturbed.
func TestEnqueueFigures(t *testing.T) {
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	cost := map[string][2]int{ // server and client
		business: {100, 50}, plain: {140, 70}, enqueue: {120, 80}, enqueue10: {180, 300},
		pipelinedBusiness: {60, 30}, pipelinedEnqueue: {70, 40},
	}
	variants := enqueueVariants()
	var alone, together [][]turn
	for _, v := range variants {
		c := cost[v.name]
		calm := turn{10, time.Second, us(10 * c[0]), us(10 * c[1]), 40, 5000}
		other := turn{20, 2 * time.Second, us(20 * c[0]), us(20 * c[1]), 80, 10_000}
		disturbed := turn{1, time.Second, time.Second, time.Second, 4, 1 << 20}
		alone = append(alone, []turn{calm, disturbed, other})
		together = append(together, []turn{{1000, time.Second, 0, 0, 0, 0}})
	}
	r := enqueueFigures(variants, alone, together, enqueueSeen{true, true, 16})
	for name, pair := range map[string][2]float64{
		"business":        {*r.Business, 100},
		"plain":           {*r.Plain, 140},
		"enqueue":         {*r.Enqueue, 120},
		"ratio":           {*r.Ratio, 0.5},
		"pipelined ratio": {*r.PipelinedRatio, 0.25},
		"client ratio":    {*r.ClientRatio, 1.5},
		"batch10 ratio":   {*r.Batch10Ratio, 4},
		"round trips":     {r.Variants[0].RoundTrips, 4},
		"WAL":             {r.Variants[0].WAL, 500},
		"per second":      {r.Variants[0].PerSecond, 10},
		"of all writers":  {r.Variants[0].WritersPerSecond, 1000},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
	if r.LeftOut != "" {
		t.Errorf("left out: %q", r.LeftOut)
	}
}

// TestEnqueueElsewhere: with a server on another machine its processor time and the ratios are left out, and that is said.
func TestEnqueueElsewhere(t *testing.T) {
	variants := enqueueVariants()
	turns := make([][]turn, len(variants))
	for i := range turns {
		turns[i] = []turn{{10, time.Second, 0, time.Millisecond, 40, 5000}}
	}
	r := enqueueFigures(variants, turns, turns, enqueueSeen{false, true, 16})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server_us", `"ratio"`, "pipelined_ratio", "batch10_ratio"} {
		if strings.Contains(string(text), name) {
			t.Errorf("%s is there: %s", name, text)
		}
	}
	for _, name := range []string{"client_us", "client_ratio", "wal_bytes", "left_out"} {
		if !strings.Contains(string(text), name) {
			t.Errorf("%s is missing: %s", name, text)
		}
	}
	table := r.Table()
	if last := table[len(table)-1]; last[0] != notSeen || table[1][1] != "-" {
		t.Errorf("table: %q", table)
	}
}

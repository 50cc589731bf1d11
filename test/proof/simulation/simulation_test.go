package simulation_test

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// number returns a number from an environment variable.
func number(t *testing.T, name string, preset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return n
}

// seedsOfCI takes about half a minute of processor time.
const seedsOfCI = 1000

// TestRelay runs many plans. make simulation runs 100,000.
func TestRelay(t *testing.T) {
	if seed := number(t, "POSTRIDER_SEED", -1); seed >= 0 {
		for range number(t, "POSTRIDER_TIMES", 1) {
			r := play(t, plans.Example(seed), true)
			if r.wrong != "" || testing.Verbose() {
				t.Log(strings.Join(r.trace, "\n"))
			}
			if r.wrong != "" {
				tell(t, seed, r)
				return
			}
		}
		return
	}
	seeds := number(t, "POSTRIDER_SEEDS", seedsOfCI)
	from := number(t, "POSTRIDER_FROM", 1)
	var next, failed atomic.Int64
	next.Store(int64(from))
	var mu sync.Mutex
	var total result
	start := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for range 2 {
			t.Run("player", func(t *testing.T) {
				t.Parallel()
				for failed.Load() == 0 {
					seed := int(next.Add(1)) - 1
					if seed >= from+seeds {
						return
					}
					r := play(t, plans.Example(seed), false)
					if r.wrong != "" && failed.CompareAndSwap(0, int64(seed)) {
						tell(t, seed, r)
					}
					mu.Lock()
					total.simulated += r.simulated
					total.committed += r.committed
					total.received += r.received
					total.faults += r.faults
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(start)
	t.Logf("%d seeds in %v: %v simulated, %d messages, %d deliveries, %d faults",
		min(int(next.Load())-from, seeds), took.Round(time.Millisecond), total.simulated.Round(time.Second), total.committed, total.received, total.faults)
	if seed := failed.Load(); seed != 0 {
		t.Run("smaller", func(t *testing.T) { shrink(t, int(seed)) })
	}
}

// play runs one plan in virtual time. With logs, the trace includes the relays' logs.
func play(t *testing.T, p plan, logs bool) (r result) {
	synctest.Test(t, func(t *testing.T) { r = simulate(p, logs) })
	return r
}

func tell(t *testing.T, seed int, r result) {
	t.Helper()
	trace := r.trace
	if len(trace) > 200 {
		trace = append([]string{"…"}, trace[len(trace)-200:]...)
	}
	t.Errorf("seed %d: %s\nto repeat, with all that happened: POSTRIDER_SEED=%d POSTRIDER_TIMES=100 go test -run TestRelay ./simulation\n%v%s",
		seed, r.wrong, seed, plans.Example(seed), strings.Join(trace, "\n"))
}

// shrink has rapid look for a smaller plan that fails.
func shrink(t *testing.T, seed int) {
	for name, value := range map[string]string{"rapid.seed": strconv.Itoa(seed), "rapid.checks": "1", "rapid.nofailfile": "true", "rapid.shrinktime": "20s"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := plans.Draw(rt, "plan")
		if r := play(t, p, false); r.wrong != "" {
			rt.Fatalf("%s\n%v", r.wrong, p)
		}
	})
}

package fault_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/fault"
)

func plan(seed int64) fault.Plan {
	return fault.Plan{Seed: seed, Length: 10 * time.Minute, Faults: 60, Kinds: fault.Kinds(), Quiet: 0.2}
}

// key returns a comparable form of a schedule: kinds contain functions, which cannot be compared.
func key(all []fault.Planned) []string {
	var keys []string
	for _, f := range all {
		keys = append(keys, fmt.Sprint(f.Number, f.Kind.Name, f.At, f.For, f.Seed))
	}
	return keys
}

func TestScheduleRepeats(t *testing.T) {
	for seed := range int64(20) {
		if !reflect.DeepEqual(key(fault.Schedule(plan(seed))), key(fault.Schedule(plan(seed)))) {
			t.Fatalf("seed %d gives two schedules", seed)
		}
	}
	if reflect.DeepEqual(key(fault.Schedule(plan(1))), key(fault.Schedule(plan(2)))) {
		t.Error("two seeds give one schedule")
	}
}

// TestSchedule checks the guarantees of every schedule, for many sizes.
func TestSchedule(t *testing.T) {
	for _, size := range []struct {
		length time.Duration
		faults int
	}{{3 * time.Minute, 18}, {10 * time.Minute, 60}, {time.Hour, 500}, {2 * time.Hour, 1000}} {
		for seed := range int64(50) {
			p := plan(seed)
			p.Length, p.Faults = size.length, size.faults
			all := fault.Schedule(p)
			if len(all) < size.faults*95/100 || len(all) > size.faults {
				t.Errorf("%v, seed %d: %d of %d faults", size.length, seed, len(all), size.faults)
			}
			check(t, p, all)
			if t.Failed() {
				t.Fatalf("%v, seed %d", size.length, seed)
			}
		}
	}
}

func check(t *testing.T, p fault.Plan, all []fault.Planned) {
	t.Helper()
	end := func(f fault.Planned) time.Duration { return f.At + f.For + f.Kind.Takes }
	kinds := map[string]int{}
	var busy, until time.Duration
	for i, f := range all {
		kinds[f.Kind.Name]++
		if f.Number != i+1 || i > 0 && f.At < all[i-1].At {
			t.Errorf("fault %d is number %d, at %v", i, f.Number, f.At)
		}
		if f.For < f.Kind.Shortest || f.For > f.Kind.Longest || end(f) > p.Length {
			t.Errorf("%s at %v lasts %v", f.Kind.Name, f.At, f.For)
		}
		atOnce := 1
		for _, other := range all[:i] {
			if end(other) <= f.At {
				continue
			}
			atOnce++
			if f.Kind.Excludes(other.Kind) {
				t.Errorf("%s at %v while there is %s from %v to %v", f.Kind.Name, f.At, other.Kind.Name, other.At, end(other))
			}
		}
		if atOnce > fault.AtOnce {
			t.Errorf("%d faults at %v", atOnce, f.At)
		}
		busy += max(0, end(f)-max(f.At, until))
		until = max(until, end(f))
	}
	if quiet := 1 - busy.Seconds()/p.Length.Seconds(); quiet < p.Quiet {
		t.Errorf("%.0f %% of the time are quiet", 100*quiet)
	}
	for _, k := range p.Kinds {
		if n := kinds[k.Name]; n == 0 && len(all) > 2*len(p.Kinds) {
			t.Errorf("%s does not occur", k.Name)
		}
	}
}

// TestExclusions checks that nothing disturbs a database that is being moved, and that exclusions
// are mutual.
func TestExclusions(t *testing.T) {
	kinds := map[string]fault.Kind{}
	for _, k := range fault.Kinds() {
		kinds[k.Name] = k
	}
	for _, pair := range [][2]string{
		{"failover", "power-loss"}, {"failover", "backend-terminate"}, {"restore", "proxy-delay"}, {"restore", "prepared-transaction"},
		{"rolling-upgrade", "relay-kill"}, {"nats-kill", "nats-leader-kill"}, {"http-500", "receiver-kill"},
	} {
		a, b := kinds[pair[0]], kinds[pair[1]]
		if a.Name == "" || b.Name == "" || !a.Excludes(b) || !b.Excludes(a) {
			t.Errorf("%s and %s may run at the same time", pair[0], pair[1])
		}
	}
	if kinds["relay-kill"].Excludes(kinds["relay-pause"]) || kinds["relay-kill"].Excludes(kinds["kafka-kill"]) {
		t.Error("faults that have nothing to do with each other exclude each other")
	}
}

func TestKinds(t *testing.T) {
	names := map[string]bool{}
	for _, k := range fault.Kinds() {
		if names[k.Name] || k.Doc == "" || k.Weight <= 0 || k.Begin == nil || k.Shortest > k.Longest {
			t.Errorf("%s is described twice, or not well", k.Name)
		}
		names[k.Name] = true
	}
	t.Log(len(names), "kinds")
}

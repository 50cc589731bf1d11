package brokers_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
)

const (
	orderedKeys  = 50
	orderedLease = time.Second
)

// TestOrdered runs three processes of one group with the option ordered. They are killed, suspended
// and stopped at random, mostly the one that receives. No message is lost, the first calls for each
// key are in order, no process begins a call after another has taken the lease, and no message
// waits long.
func TestOrdered(t *testing.T) {
	need.Alone(t, "measures how long nobody receives")
	for _, driver := range []string{"nats", "redis"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, driver, map[string]string{"ordered": "true", "lease": orderedLease.String()})
			f.trouble(time.Duration(pick(9, 300)) * time.Second)
			h := f.settle()
			t.Log(f.done, h, "longest stall of the test itself", f.stall.Round(time.Millisecond))
			if lost := f.sent - h.distinct; lost != 0 {
				t.Errorf("%d of %d messages are lost", lost, f.sent)
			}
			if h.disorder > 0 {
				t.Errorf("%d first calls are out of order", h.disorder)
			}
			// A process can be suspended between the check of its lease and the first statement of
			// its handler.
			if h.intruding > f.done["pause"] {
				t.Errorf("%d calls began without the lease, with %d pauses: %q; faults %v", h.intruding, f.done["pause"], h.intruders, f.faults)
			}
			if most := orderedLease + 2*time.Second + f.stall; h.longest > most { // while the machine stalls, so do consumers
				t.Errorf("nothing was handled for %v, want at most %v", h.longest, most)
			}
			if h.takeovers < 4 { // the receiving process was killed, suspended and stopped at least once each
				t.Errorf("the lease was taken %d times: the trouble did not matter", h.takeovers)
			}
		})
	}
}

// TestWithoutOrdered shows that the checks of [TestOrdered] detect violations: without the option,
// order is lost.
func TestWithoutOrdered(t *testing.T) {
	need.Long(t, "shows what the option is for")
	for driver, values := range map[string]map[string]string{"nats": {"ack_wait": "1s"}, "redis": {"claim_idle": "1s"}} {
		t.Run(driver, func(t *testing.T) {
			f := newFleet(t, driver, values)
			f.trouble(5 * time.Second)
			h := f.settle()
			t.Log(f.done, h)
			if h.disorder == 0 {
				t.Error("three processes keep the order without the option")
			}
		})
	}
}

// fleet is three consumer processes of one group, and a producer.
type fleet struct {
	t       *testing.T
	order   order
	records *records
	running map[int]*process // by process ID
	paused  map[int]time.Time
	done    map[string]int // number of faults by kind
	faults  []fault
	stall   time.Duration // of the test itself, on a busy machine
	pub     postrider.Publisher
	topic   string
	sent    int
}

func newFleet(t *testing.T, driver string, values map[string]string) *fleet {
	t.Helper()
	i := slices.IndexFunc(servers, func(s server) bool { return s.driver == driver })
	b := servers[i]
	topic := b.create(t)
	settings := b.settings(t, map[string]string{"name": topic, "group": "fleet"})
	maps.Copy(settings.Values, values)
	r := newRecords(t)
	f := &fleet{
		t: t, records: r, pub: b.publisher(t, topic), topic: topic,
		order:   order{Driver: driver, URL: settings.URL, Values: settings.Values, Record: r.file.Name()},
		running: make(map[int]*process), paused: make(map[int]time.Time), done: make(map[string]int),
	}
	for range 3 {
		f.start()
	}
	return f
}

func (f *fleet) start() {
	p := f.order.start(f.t)
	f.running[p.cmd.Process.Pid] = p
}

// trouble produces for a while, and injects faults meanwhile.
func (f *fleet) trouble(length time.Duration) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	var run sync.WaitGroup
	run.Go(func() { f.produce(ctx) })
	defer run.Wait()
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	kinds := []string{"kill", "pause", "stop"}
	next := time.Now().Add(time.Second)
	last := time.Now()
	for end := time.Now().Add(length); time.Now().Before(end); <-tick.C {
		f.stall = max(f.stall, time.Since(last))
		last = time.Now()
		f.records.update(f.t)
		f.wake(false)
		if time.Now().Before(next) || len(f.records.all) == 0 {
			continue
		}
		if kind := kinds[0]; f.hit(kind) {
			kinds = append(kinds[1:], kind)
			next = time.Now().Add(time.Duration(pick(1, 2))*time.Second + rand.N(time.Duration(pick(1, 2))*time.Second))
		}
	}
}

// hit injects a fault into a process: the first time, and later in two of three cases, into the one
// that receives. It reports false if there is none.
func (f *fleet) hit(kind string) bool {
	victims := slices.DeleteFunc(slices.Sorted(maps.Keys(f.running)), func(pid int) bool { return !f.paused[pid].IsZero() })
	owner := f.records.owner()
	first := f.done[kind] == 0
	if len(victims) == 0 || first && !slices.Contains(victims, owner) {
		return false
	}
	pid := victims[rand.N(len(victims))]
	if slices.Contains(victims, owner) && (first || rand.N(3) > 0) {
		pid = owner
	}
	f.done[kind]++
	f.faults = append(f.faults, fault{time.Now(), kind, pid})
	p := f.running[pid]
	switch kind {
	case "pause":
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		length := orderedLease/2 + rand.N(2*orderedLease)
		if first {
			length = 2 * orderedLease
		}
		f.paused[pid] = time.Now().Add(length)
	case "kill", "stop":
		delete(f.running, pid)
		_ = p.cmd.Process.Signal(map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGTERM}[kind])
		f.start()
	}
	return true
}

// wake resumes processes whose suspension is over, or all.
func (f *fleet) wake(all bool) {
	for pid, until := range f.paused {
		if all || time.Now().After(until) {
			_ = f.running[pid].cmd.Process.Signal(syscall.SIGCONT)
			delete(f.paused, pid)
		}
	}
}

// produce sends messages of all keys, numbered by key, a few of each at a time, so that some wait
// behind others when a process is hit.
func (f *fleet) produce(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		msgs := make([]postrider.Message, orderedKeys)
		for key := range msgs {
			msgs[key] = postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: strconv.Itoa(key)}, fmt.Appendf(nil, "%d/%d", key, n))
			msgs[key].Topic = f.topic
		}
		for _, err := range f.pub.Publish(context.WithoutCancel(ctx), msgs) {
			if err != nil {
				f.t.Errorf("publishing: %v", err)
				return
			}
		}
		f.sent += len(msgs)
		if n%3 == 2 {
			<-tick.C
		}
	}
}

// settle waits until everything was handled, and returns the summary.
func (f *fleet) settle() handled {
	f.t.Helper()
	f.wake(true)
	for deadline := time.Now().Add(time.Duration(pick(30, 60)) * time.Second); ; time.Sleep(50 * time.Millisecond) {
		f.records.update(f.t)
		if h := f.records.summarize(f.faults); h.distinct >= f.sent || time.Now().After(deadline) {
			break
		}
	}
	for _, p := range f.running {
		p.end(syscall.SIGTERM)
	}
	f.records.update(f.t)
	return f.records.summarize(f.faults)
}

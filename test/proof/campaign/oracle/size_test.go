package oracle

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/campaign/record"
)

// A run of ten million events must be checked in less than a minute and a gigabyte. Outside the
// long tier the test uses a fiftieth, and checks only memory, in proportion.
func TestTenMillionEvents(t *testing.T) {
	events := 200_000
	if need.IsLong() {
		events = 10_000_000
	}
	dir := bigRun(t, events)
	runtime.GC()

	stop, peak := make(chan bool), make(chan uint64)
	go func() {
		var highest uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, m.Sys-m.HeapReleased)
			select {
			case <-stop:
				peak <- highest
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	began, worked := time.Now(), cpuTime(t)
	v, err := Check(dir)
	took, worked := time.Since(began), cpuTime(t)-worked
	close(stop)
	memory := <-peak
	if err != nil || len(v.Broken()) > 0 || v.Counts.Events != int64(events) {
		t.Fatalf("%v\n%s", err, v)
	}
	t.Logf("%d events, %d receipts, %d effects: %.1f s, of which the processor worked %.1f s, and %d MB",
		events, v.Counts.Receipts, v.Counts.Effects, took.Seconds(), worked.Seconds(), memory>>20)
	if memory > 1<<30 || !need.IsLong() && memory > 200<<20 {
		t.Errorf("%d MB are too many", memory>>20)
	}
	if worked > time.Minute { // wall-clock time depends on other processes
		t.Errorf("%v is too long", worked)
	}
}

func cpuTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// bigRun writes a clean run of many events to five destinations with 300 keys each; one in 10,000
// comes again after a fault.
func bigRun(t testing.TB, events int) string {
	t.Helper()
	dir := t.TempDir()
	w, err := record.Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	destinations := []string{"http", "kafka", "nats", "rabbitmq", "redis"}
	run := record.Run{ID: "big", Begin: begin, End: begin.Add(2 * time.Hour), Consumers: map[string][]string{}}
	for _, d := range destinations {
		run.Consumers[d] = []string{"ledger"}
	}
	fault := record.Event{At: begin, Fault: 1, Kind: "relay-kill", Phase: record.Begin, Touches: []string{record.Relay}}
	if err := w.Event(fault); err != nil {
		t.Fatal(err)
	}
	keys := make([]string, 300)
	for i := range keys {
		keys[i] = "order-" + strconv.Itoa(i)
	}
	seqs := make([]int64, len(destinations)*len(keys))
	for n := range events {
		d, k := n%len(destinations), n/7%len(keys)
		place := d*len(keys) + k
		seqs[place]++
		id := fmt.Sprintf("%08x-0000-7000-8000-%012x", uint32(n)*2654435761, uint64(n)*0x9e3779b97f4a7c15>>16)
		m := record.Message{Destination: destinations[d], Key: keys[k], Seq: seqs[place], ID: id}
		at, sum := begin.Add(time.Duration(n)*time.Millisecond/2), uint64(n)*0x9e3779b97f4a7c15
		r := record.Receipt{Message: m, Offset: int64(n), Sum: sum, At: at}
		err := w.Intent(record.Intent{Message: m, Sum: sum, At: at})
		for i := range 1 + max(0, 1-n%10_000) {
			r.Offset = int64(n*2 + i)
			if err == nil {
				err = w.Receipt(r)
			}
		}
		if err == nil {
			err = w.Effect(record.Effect{Message: m, N: int64(n), Consumer: "ledger"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Run(run); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

package bench

import (
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// TestWindow: each message counts once, in whatever order its commit and its effects are noted.
func TestWindow(t *testing.T) {
	w := newWindow()
	for range 3 {
		w.draw()
	}
	w.commit(0)
	w.handle(0)
	w.handle(0) // again
	w.handle(1) // before its commit has returned
	w.commit(1)
	w.handle(1)
	w.handle(77) // of another run
	w.commit(2)
	if w.committed.Load() != 3 || w.handled.Load() != 2 || w.waiting() != 1 {
		t.Errorf("%d committed, %d handled", w.committed.Load(), w.handled.Load())
	}
	if taken := w.take(); len(taken) != 2 || !slices.Contains(taken, 0) {
		t.Errorf("latencies %v", taken)
	}
	if taken := w.take(); len(taken) != 0 {
		t.Errorf("latencies %v, again", taken)
	}
	w.handle(2)
	if w.waiting() != 0 || len(w.take()) != 1 {
		t.Errorf("%d wait", w.waiting())
	}
}

// TestWindowUnderLoad: producers and consumers at the same time, more messages than a window remembers, and never more on their way than
// there is room for.
func TestWindowUnderLoad(t *testing.T) {
	w := newWindow()
	const writers, each, room = 8, windowSize * 5 / 32, 1000
	w.bound(room)
	sent := make(chan int64, room)
	var producers, consumers sync.WaitGroup
	for range writers {
		producers.Go(func() {
			for range each {
				n := w.draw()
				sent <- n
				w.commit(n)
			}
		})
		consumers.Go(func() {
			for n := range sent {
				w.handle(n)
				w.handle(n)
				if over := w.next.Load() - w.handled.Load(); over > room+writers {
					t.Errorf("%d on their way", over)
				}
			}
		})
	}
	producers.Wait()
	close(sent)
	consumers.Wait()
	if w.waiting() != 0 || len(w.take()) != writers*each {
		t.Errorf("%d wait", w.waiting())
	}
}

func TestNumberOf(t *testing.T) {
	payload := binary.BigEndian.AppendUint64(nil, 4711)
	if n := numberOf(&postrider.Message{Payload: payload}); n != 4711 {
		t.Error(n)
	}
}

// TestEvaluate: what wanders is flat, what rises is not, and what is not filled yet is not evaluated.
func TestEvaluate(t *testing.T) {
	plan := &SoakPlan{For: time.Hour, Load: 0.7}
	run := func(change func(i int, s *SoakSample)) SoakResult {
		var r SoakResult
		for i := range 60 {
			wander := int64(i*7919%13 - 6)
			s := SoakSample{
				At: float64(60 * (i + 1)), Machine: 3 + float64(wander)/10, P50: 5 + float64(wander)/10, P99: 40 + 3*float64(wander), RelayMemory: 80<<20 + wander<<20,
				RelayGoroutines: 40 + int(wander)%3, RelayFiles: 20, Memory: 90 << 20, Goroutines: 70, Files: 40,
				Log: 300<<20 + (wander << 22), Inbox: 100 << 20, LedgerRows: 90_000 + 500*wander,
			}
			if change != nil {
				change(i, &s)
			}
			r.Samples = append(r.Samples, s)
		}
		r.evaluate(plan)
		return r
	}
	if r := run(nil); !r.Flat || len(r.Faults()) > 0 {
		t.Errorf("a flat run: %v", r.Faults())
	}
	if r := run(func(i int, s *SoakSample) { s.RelayMemory += 2000 << 20 * int64(i%30/29) }); !r.Flat {
		t.Errorf("a single bad sample: %v", r.Faults())
	}
	for what, change := range map[string]func(i int, s *SoakSample){
		"memory of the relay":         func(i int, s *SoakSample) { s.RelayMemory += int64(i) << 20 },
		"goroutines of the relay":     func(i int, s *SoakSample) { s.RelayGoroutines += i / 3 },
		"files of the relay":          func(i int, s *SoakSample) { s.RelayFiles += i / 4 },
		"memory of the consumers":     func(i int, s *SoakSample) { s.Memory += int64(i) << 20 },
		"goroutines of the consumers": func(i int, s *SoakSample) { s.Goroutines += i / 2 },
		"files of the consumers":      func(i int, s *SoakSample) { s.Files += i / 3 },
		"commit to effect, median":    func(i int, s *SoakSample) { s.P50 += float64(i) / 3 },
		"commit to effect, 99 %":      func(i int, s *SoakSample) { s.P99 += float64(3 * i) },
		"size of the log":             func(i int, s *SoakSample) { s.Log += int64(i) * 8 << 20 },
		"size of the inbox":           func(i int, s *SoakSample) { s.Inbox += int64(i) << 20 },
		"rows of the ledger":          func(i int, s *SoakSample) { s.LedgerRows += int64(1000 * i) },
	} {
		r := run(change)
		if faults := r.Faults(); r.Flat || len(faults) != 1 || !strings.HasPrefix(faults[0], what) {
			t.Errorf("%s rises, but the faults are %q", what, faults)
		}
	}
	slower := func(i int, s *SoakSample) {
		s.Machine += float64(i) / 10
		s.P50 += float64(i) / 3
		s.P99 += float64(3 * i)
	}
	if r := run(slower); !r.Flat || r.Trends[0].Why == "" {
		t.Errorf("latencies rise with the machine's: %v", r.Faults())
	}
	if r := run(func(i int, s *SoakSample) { slower(i, s); s.RelayFiles += i / 4 }); r.Flat || len(r.Faults()) != 1 {
		t.Errorf("files rise on a machine that becomes slower: %v", r.Faults())
	}
	if r := run(func(i int, s *SoakSample) { s.LedgerRows += int64(max(0, 20-i)) * 10_000 }); !r.Flat {
		t.Errorf("what falls in the first half: %v", r.Faults())
	}

	short := &SoakPlan{For: time.Minute, Load: 0.7}
	r := run(nil)
	for i := range r.Samples {
		r.Samples[i].At = float64(i + 1)
		r.Samples[i].LedgerRows = int64(1000 * i) // the ten minutes that it is kept have not passed
	}
	if r.evaluate(short); !r.Flat {
		t.Errorf("a short run: %v", r.Faults())
	}
	r.Missing = 1
	if r.evaluate(short); r.Flat || len(r.Faults()) != 1 {
		t.Errorf("a message without its effect: %v", r.Faults())
	}
	if text := r.Chart(short); !strings.Contains(text, "not evaluated") || strings.Count(text, "<g ") != 1+len(r.Trends) {
		t.Errorf("the chart is\n%s", text)
	}
}

func TestSoakPlan(t *testing.T) {
	for _, length := range []time.Duration{10 * time.Second, 40 * time.Second, 10 * time.Minute, time.Hour, 48 * time.Hour} {
		p := SoakPlan{For: length, Load: 0.5}
		ring := p.Ring()
		if ring.Period%time.Second != 0 || ring.Inbox%(7*time.Second) != 0 || ring.Period < 3*time.Second {
			t.Errorf("%s: %+v", length, ring)
		}
		if turns := time.Duration(ring.Slots+1) * ring.Period; length >= time.Minute && turns > length/2 {
			t.Errorf("%s: the log is filled after %s only", length, turns)
		}
	}
	bad := SoakPlan{For: time.Second}
	if err := bad.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("it says %v", err)
	}
}

package bench

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// windowSize is the number of recent messages that a window records.
const windowSize = 1 << 20

// roomAtFullLoad is the maximum number of messages in flight during calibration, which is enough to
// keep all parts busy.
const roomAtFullLoad = 4000

// window records for recent messages when their commits returned, and measures the time to their
// effects. Unlike a book, it uses constant memory.
type window struct {
	start     time.Time
	next      atomic.Int64
	committed atomic.Int64
	handled   atomic.Int64
	room      atomic.Int64 // maximum number of messages in flight; 0: no limit
	stamps    [windowSize]atomic.Int64

	mu        sync.Mutex
	latencies []int64 // since the last take, in nanoseconds
	spare     []int64
}

// Values of a stamp other than the time of the commit.
const (
	drawnOnly   = 0  // not known to be committed
	handledSoon = -1 // handled before the commit had returned
	handledEver = -2 // ignore repetitions
)

func newWindow() *window { return &window{start: time.Now()} }

// bound makes producers wait while so many messages are in flight; 0 removes the limit.
func (w *window) bound(room int64) { w.room.Store(room) }

// waiting returns how many committed messages have had no effect yet.
func (w *window) waiting() int64 { return w.committed.Load() - w.handled.Load() }

// draw waits until a message may be sent, and returns a number for it.
func (w *window) draw() int64 {
	for {
		room := w.room.Load()
		if room == 0 || w.next.Load()-w.handled.Load() < room {
			break
		}
		time.Sleep(200 * time.Microsecond)
	}
	n := w.next.Add(1) - 1
	w.stamps[n%windowSize].Store(drawnOnly)
	return n
}

// commit records that the commit of a message has just returned.
func (w *window) commit(number int64) {
	w.committed.Add(1)
	stamp := int64(time.Since(w.start)) + 1
	if !w.stamps[number%windowSize].CompareAndSwap(drawnOnly, stamp) {
		w.enter(0) // the effect came before the commit had returned
		w.stamps[number%windowSize].CompareAndSwap(handledSoon, handledEver)
	}
}

// handle records the effect of a message. It ignores repetitions.
func (w *window) handle(number int64) {
	if number < 0 || number >= w.next.Load() || number < w.next.Load()-windowSize {
		return // of another run, or no longer recorded
	}
	slot := &w.stamps[number%windowSize]
	for {
		stamp := slot.Load()
		switch {
		case stamp == handledSoon || stamp == handledEver:
			return
		case stamp == drawnOnly && slot.CompareAndSwap(drawnOnly, handledSoon):
			w.handled.Add(1)
			return
		case stamp > 0 && slot.CompareAndSwap(stamp, handledEver):
			w.handled.Add(1)
			w.enter(max(0, int64(time.Since(w.start))+1-stamp))
			return
		}
	}
}

func (w *window) enter(latency int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latencies = append(w.latencies, latency)
}

// take returns the latencies since the last call. They are valid until the next one.
func (w *window) take() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.latencies
	w.latencies, w.spare = w.spare[:0], taken
	return taken
}

// numberOf returns the number at the start of a payload.
func numberOf(m *postrider.Message) uint64 { return binary.BigEndian.Uint64(m.Payload) }

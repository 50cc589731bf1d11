package trial

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pageSize = 1 << 14
	maxPages = 1 << 12 // of numbers: 67 million messages in one trial
)

// book records for every message when its commit returned and when it first arrived. The number of
// a message is its index in the book.
type book struct {
	start      time.Time // stamps are relative to it
	next       atomic.Int64
	committed  atomic.Int64
	arrived    atomic.Int64 // each counted once
	duplicates atomic.Int64
	first      atomic.Int64 // stamp of the very first arrival
	last       atomic.Int64 // stamp of the latest first arrival of a message

	mu    sync.Mutex // held to add a page
	pages [maxPages]atomic.Pointer[page]

	// For each key, the highest sequence number that has arrived, and how many arrived after a
	// higher one. Used only by the receiver.
	highest    map[int64]int64
	inversions atomic.Int64
}

// page has stamps in nanoseconds since the book's start; 0 means not yet.
type page struct {
	committed, arrived [pageSize]atomic.Int64
}

func newBook() *book { return &book{start: time.Now(), highest: map[int64]int64{}} }

// now is never 0.
func (b *book) now() int64 { return int64(time.Since(b.start)) + 1 }

// draw returns a number for a new message.
func (b *book) draw() int64 { return b.next.Add(1) - 1 }

func (b *book) page(number int64) *page {
	slot := &b.pages[number/pageSize]
	if p := slot.Load(); p != nil {
		return p
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := slot.Load(); p != nil {
		return p
	}
	p := new(page)
	slot.Store(p)
	return p
}

// commit records that the commit of a message has just returned.
func (b *book) commit(number int64) {
	b.page(number).committed[number%pageSize].Store(b.now())
	b.committed.Add(1)
}

// receive records an arrival. Only one goroutine may call it.
func (b *book) receive(payload []byte) {
	number, key, seq, ok := readPayload(payload)
	if !ok || number >= pageSize*maxPages {
		return
	}
	stamp := b.now()
	if !b.page(number).arrived[number%pageSize].CompareAndSwap(0, stamp) {
		b.duplicates.Add(1)
		return
	}
	b.first.CompareAndSwap(0, stamp)
	b.last.Store(stamp)
	b.arrived.Add(1)
	if seq == 0 {
		return // its writer has locked nothing, so it is unordered
	}
	if seq < b.highest[key] {
		b.inversions.Add(1)
	} else {
		b.highest[key] = seq
	}
}

// latencies returns the times from commit to arrival, in nanoseconds, of the messages with numbers
// in [first, end), and how many of them have not arrived: these count with the time until now. A
// message that arrived before its producer learned of the commit counts as 0.
func (b *book) latencies(first, end int64) (times []int64, waiting int64) {
	now := b.now()
	for n := first; n < end; n++ {
		p := b.page(n)
		committed, arrived := p.committed[n%pageSize].Load(), p.arrived[n%pageSize].Load()
		if committed == 0 {
			continue
		}
		if arrived == 0 {
			waiting++
			arrived = now
		}
		times = append(times, max(0, arrived-committed))
	}
	return times, waiting
}

// check counts the committed messages that have not arrived, and those that arrived without being
// committed.
func (b *book) check() (lost, phantoms int64) {
	for i := range b.next.Load() {
		p := b.page(i)
		committed, arrived := p.committed[i%pageSize].Load() != 0, p.arrived[i%pageSize].Load() != 0
		switch {
		case committed && !arrived:
			lost++
		case arrived && !committed:
			phantoms++
		}
	}
	return lost, phantoms
}

// await waits until the given number of messages has arrived, until the deadline, or until idle has
// passed since the last arrival.
func (b *book) await(ctx context.Context, count int64, deadline time.Time, idle time.Duration) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	seen, since := b.arrived.Load(), time.Now()
	for {
		arrived := b.arrived.Load()
		if arrived >= count || time.Now().After(deadline) {
			return nil
		}
		if arrived != seen {
			seen, since = arrived, time.Now()
		} else if time.Since(since) > idle {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

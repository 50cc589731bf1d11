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

// book knows of every message when its commit returned and when it first arrived. Messages are known by a number, which is
// their place in the book.
type book struct {
	start      time.Time // stamps count from here
	next       atomic.Int64
	committed  atomic.Int64
	arrived    atomic.Int64 // each counted once
	duplicates atomic.Int64
	first      atomic.Int64 // stamp of the first arrival of all
	last       atomic.Int64 // stamp of the newest arrival of a message that had not arrived before

	mu    sync.Mutex // held to add a page
	pages [maxPages]atomic.Pointer[page]

	// Of each key, the highest sequence number that has arrived; and how many arrived behind a higher one. The receiver's own.
	highest    map[int64]int64
	inversions atomic.Int64
}

// page holds stamps in nanoseconds after the book's start; 0 means not yet.
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

// commit notes that the commit of a message has just returned.
func (b *book) commit(number int64) {
	b.page(number).committed[number%pageSize].Store(b.now())
	b.committed.Add(1)
}

// receive notes an arrival. It is called by one goroutine.
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
		return // its writer has locked nothing, so that there is no order
	}
	if seq < b.highest[key] {
		b.inversions.Add(1)
	} else {
		b.highest[key] = seq
	}
}

// latencies returns the times from commit to arrival, in nanoseconds, of the messages numbered from first up to but not
// including end, and how many of them have not arrived: for those the time until now counts. A message that arrived before its
// producer had learnt of the commit counts as 0.
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

// check counts the committed messages that have not arrived, and those that have arrived and were not committed.
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

// await waits until so many messages have arrived, at most until the deadline, and at most patience after the last arrival.
func (b *book) await(ctx context.Context, count int64, deadline time.Time, patience time.Duration) error {
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
		} else if time.Since(since) > patience {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

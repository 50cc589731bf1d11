package bench

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
)

// numberSize is the number of bytes at the start of a payload that hold the message's number.
const numberSize = 8

const (
	pageSize = 1 << 14
	maxPages = 1 << 16 // a thousand million messages
)

// book records for every message when its commit returned and when the sink confirmed it. A
// message's number is its index in the book, so an entry costs two atomic stores and no lookup.
type book struct {
	start     time.Time // time of stamp 0
	next      atomic.Int64
	committed atomic.Int64 // how many
	delivered atomic.Int64 // how many, each counted once
	last      atomic.Int64 // stamp of the newest confirmation

	mu    sync.Mutex // held to add a page
	pages [maxPages]atomic.Pointer[page]
}

// page holds stamps in nanoseconds after the book's start; 0 means not yet.
type page struct {
	committed, confirmed [pageSize]atomic.Int64
}

func newBook() *book { return &book{start: time.Now()} }

// now returns the current stamp, which is never 0.
func (b *book) now() int64 { return int64(time.Since(b.start)) + 1 }

// draw returns a number for a new message.
func (b *book) draw() int64 { return b.next.Add(1) - 1 }

// drawn returns how many numbers have been drawn.
func (b *book) drawn() int64 { return b.next.Load() }

// reserve allocates pages for numbers below n.
func (b *book) reserve(n int64) {
	for i := int64(0); i < n; i += pageSize {
		b.page(i)
	}
}

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

// confirm records that messages were confirmed just now. It ignores repeated confirmations.
func (b *book) confirm(msgs []postrider.Message) {
	stamp := b.now()
	var fresh int64
	for i := range msgs {
		payload := msgs[i].Payload
		if len(payload) < numberSize {
			continue
		}
		number := binary.BigEndian.Uint64(payload)
		if number < pageSize*maxPages && b.page(int64(number)).confirmed[number%pageSize].CompareAndSwap(0, stamp) {
			fresh++
		}
	}
	b.last.Store(stamp)
	b.delivered.Add(fresh)
}

// latencies returns the times from commit to confirmation, in nanoseconds, of the messages numbered
// from first up to but not including end. A message that was confirmed before its commit had
// returned counts as 0.
func (b *book) latencies(first, end int64) []int64 {
	times := make([]int64, 0, max(0, end-first))
	for n := first; n < end; n++ {
		p := b.page(n)
		committed, confirmed := p.committed[n%pageSize].Load(), p.confirmed[n%pageSize].Load()
		if committed != 0 && confirmed != 0 {
			times = append(times, max(0, confirmed-committed))
		}
	}
	return times
}

// undelivered returns how many of the committed messages were never confirmed.
func (b *book) undelivered() int64 {
	var missing int64
	for n := range b.drawn() {
		p := b.page(n)
		if p.committed[n%pageSize].Load() != 0 && p.confirmed[n%pageSize].Load() == 0 {
			missing++
		}
	}
	return missing
}

// progressTimeout is how long to wait for a relay that makes no progress.
const progressTimeout = 30 * time.Second

// await waits until count messages have been delivered, or until there is no progress for
// progressTimeout.
func (b *book) await(ctx context.Context, count int64, progress func(delivered, count int64)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var seen int64
	since := time.Now()
	for {
		delivered := b.delivered.Load()
		if delivered >= count {
			return nil
		}
		if delivered != seen {
			seen, since = delivered, time.Now()
		} else if time.Since(since) > progressTimeout {
			return nil // the caller counts the missing ones
		}
		progress(delivered, count)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

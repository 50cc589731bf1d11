package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// point is a cursor's position between two windows: everything that the snapshot sees has been
// passed.
//
// lo is the snapshot's floor: every message at or below it is seen by the snapshot, or belongs to a
// transaction that the snapshot lists as in flight. This is a property of the snapshot, so it holds
// whichever relay found it.
type point struct {
	snapshot string
	lo       int64
	inFlight []uint64 // transactions that the snapshot lists as in flight, sorted
	starts   []int64  // for each of them, a number below all its messages
}

// newPoint returns the point of a snapshot with a floor, using what older points prove.
func newPoint(snapshot string, floor int64, older []point) point {
	p := point{snapshot: snapshot, lo: floor, inFlight: inFlight(snapshot)}
	for _, o := range older {
		p.lo = max(p.lo, o.lo) // a floor holds for every later snapshot too
	}
	p.starts = make([]int64, len(p.inFlight))
	for i, xid := range p.inFlight {
		for _, o := range older {
			// A transaction that an older snapshot does not list began after that snapshot, so its
			// messages lie above the snapshot's floor.
			start := o.lo
			if j, ok := slices.BinarySearch(o.inFlight, xid); ok {
				start = o.starts[j]
			}
			p.starts[i] = max(p.starts[i], start)
		}
	}
	return p
}

// storedPoint returns a point that was read from the ledger.
func storedPoint(snapshot string, lo int64, starts []int64) point {
	p := point{snapshot: snapshot, lo: lo, inFlight: inFlight(snapshot)}
	p.starts = make([]int64, len(p.inFlight))
	copy(p.starts, starts)
	return p
}

// inFlight returns the transactions that a snapshot lists as in flight. A snapshot's text is
// xmin:xmax:xid,xid,…
func inFlight(snapshot string) []uint64 {
	list := snapshot[strings.LastIndexByte(snapshot, ':')+1:]
	if list == "" {
		return nil
	}
	xids := make([]uint64, 0, strings.Count(list, ",")+1)
	for text := range strings.SplitSeq(list, ",") {
		xid, _ := strconv.ParseUint(text, 10, 64)
		xids = append(xids, xid)
	}
	return xids
}

// cursor is a position in one shard of the log. If to is empty, the cursor stands between two
// windows, at from. Otherwise it stands inside the window from from to to: of the messages that to
// sees and from does not, those up to sequence number last have been passed, and none lies above
// hi.
type cursor struct {
	from, to point
	last, hi int64
}

func (c *cursor) inside() bool { return c.to.snapshot != "" }

// openBefore returns the in-flight transactions that may have messages up to a sequence number.
func (p *point) openBefore(seq int64) (xids []uint64) {
	for i, start := range p.starts {
		if start < seq {
			xids = append(xids, p.inFlight[i])
		}
	}
	return xids
}

// began returns a lower bound: every message that a later point sees and p does not lies above it.
func (p *point) began(to *point) int64 {
	began := p.lo
	for i, xid := range p.inFlight {
		if _, ok := slices.BinarySearch(to.inFlight, xid); !ok {
			began = min(began, p.starts[i])
		}
	}
	return began
}

// opened returns the cursor at the beginning of the window that ends at a point. The window's
// messages lie above began and not above hi.
func (c *cursor) opened(to point, began, hi int64) cursor {
	if c.inside() {
		return *c
	}
	return cursor{from: c.from, to: to, last: began, hi: hi}
}

// at returns the cursor inside an open window, after everything up to the given sequence number.
func (c *cursor) at(seq int64) cursor {
	moved := *c
	moved.last = seq
	return moved
}

// closed returns the cursor at the end of an open window.
func (c *cursor) closed() cursor { return cursor{from: c.to} }

// floor finds the sequence number that is safe as the floor of a snapshot.
//
// A snapshot lists only those in-flight transactions whose ID is below its xmax. So a number f is a
// floor for a snapshot only if these things happened in this order: f was known to be drawn, a
// transaction of our own took an ID and completed, and the snapshot was taken. Then every
// transaction that drew a number up to f has an older ID than ours, which is below that xmax. The
// reads serve as those transactions: a read takes an ID if that can raise the floor. Numbers come
// from pg_sequence_last_value, never from the sequence's last_value, which can be ahead of what was
// drawn.
type floor struct {
	safe int64 // a floor for every snapshot taken from now on
	seen int64 // the highest number known to be drawn
}

// beforeRead reports whether the read should take a transaction ID, and which number becomes safe
// when the read has completed.
func (f *floor) beforeRead() (takeID bool, candidate int64) { return f.seen > f.safe, f.seen }

func (f *floor) afterRead(tookID bool, candidate int64) {
	if tookID {
		f.safe = max(f.safe, candidate)
	}
}

func (f *floor) saw(seq int64) { f.seen = max(f.seen, seq) }

// page maps a batch of messages to positions of the cursor.
type page struct {
	shard *ownedShard
	no    int     // numbers the pages of a shard in the order in which they were read
	start cursor  // inside the window, before the first message
	seqs  []int64 // of the messages
	end   cursor  // after the last message
}

// position returns the cursor after the first done messages.
func (p *page) position(done int) cursor {
	switch {
	case done <= 0:
		return p.start
	case done >= len(p.seqs):
		return p.end
	default:
		return p.start.at(p.seqs[done-1])
	}
}

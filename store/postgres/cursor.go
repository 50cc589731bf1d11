package postgres

import (
	"slices"
	"strconv"
	"strings"
)

// point is where a cursor stands between two windows: everything that the snapshot sees has been passed.
//
// lo is the snapshot's floor: every message at or below it is seen by the snapshot, or belongs to a transaction that the snapshot
// lists as in flight. That is true of the snapshot, whoever found it.
type point struct {
	snapshot string
	lo       int64
	inFlight []uint64 // transactions that the snapshot lists, in order
	starts   []int64  // for each of them, a number that all its messages lie above
}

// newPoint returns that of a snapshot with a floor, from what is known of older ones.
func newPoint(snapshot string, floor int64, older []point) point {
	p := point{snapshot: snapshot, lo: floor, inFlight: inFlight(snapshot)}
	for _, o := range older {
		p.lo = max(p.lo, o.lo) // a floor stays one for every later snapshot
	}
	p.starts = make([]int64, len(p.inFlight))
	for i, xid := range p.inFlight {
		for _, o := range older {
			// What an older snapshot does not list began after it: its messages lie above that one's floor.
			start := o.lo
			if j, ok := slices.BinarySearch(o.inFlight, xid); ok {
				start = o.starts[j]
			}
			p.starts[i] = max(p.starts[i], start)
		}
	}
	return p
}

// storedPoint is one that the ledger has.
func storedPoint(snapshot string, lo int64, starts []int64) point {
	p := point{snapshot: snapshot, lo: lo, inFlight: inFlight(snapshot)}
	p.starts = make([]int64, len(p.inFlight))
	copy(p.starts, starts)
	return p
}

// inFlight returns the transactions that a snapshot lists. Its text is xmin:xmax:xid,xid,…
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

// cursor is a place in one shard of the log. Without to it stands between two windows, at from. With it, it stands inside
// the window between the two: of what to sees and from does not, everything up to sequence number last has been passed, and nothing
// lies above hi.
type cursor struct {
	from, to point
	last, hi int64
}

func (c *cursor) inside() bool { return c.to.snapshot != "" }

// openBefore returns the transactions in flight that may have messages up to a number.
func (p *point) openBefore(seq int64) (xids []uint64) {
	for i, start := range p.starts {
		if start < seq {
			xids = append(xids, p.inFlight[i])
		}
	}
	return xids
}

// began is the number in front of everything that a later point sees and p does not.
func (p *point) began(to *point) int64 {
	began := p.lo
	for i, xid := range p.inFlight {
		if _, ok := slices.BinarySearch(to.inFlight, xid); !ok {
			began = min(began, p.starts[i])
		}
	}
	return began
}

// opened is the cursor inside the window that ends at a point. Nothing of it lies in front of began, or above hi.
func (c *cursor) opened(to point, began, hi int64) cursor {
	if c.inside() {
		return *c
	}
	return cursor{from: c.from, to: to, last: began, hi: hi}
}

// at is the cursor inside an open window after everything up to the given sequence number.
func (c *cursor) at(seq int64) cursor {
	moved := *c
	moved.last = seq
	return moved
}

// closed is the cursor after all of an open window.
func (c *cursor) closed() cursor { return cursor{from: c.to} }

// floor finds the sequence number that is safe as the floor of a snapshot.
//
// A snapshot lists only those in-flight transactions whose ID is below its xmax. So a number f is a floor for it only if,
// after f was known to be drawn, a transaction of our own took an ID and completed, and the snapshot was taken only then:
// whoever drew a number up to f has an older ID than ours, which is below that xmax. The reads themselves are those
// transactions: when there is a higher number to gain, a read takes an ID. Numbers come from pg_sequence_last_value, never from
// the sequence's last_value, which can be ahead of what was drawn.
type floor struct {
	safe int64 // floor for every snapshot taken from now on
	seen int64 // highest number known to be drawn
}

// beforeRead says whether the read should take a transaction ID, and which number becomes safe when it has completed.
func (f *floor) beforeRead() (takeID bool, candidate int64) { return f.seen > f.safe, f.seen }

func (f *floor) afterRead(tookID bool, candidate int64) {
	if tookID {
		f.safe = max(f.safe, candidate)
	}
}

func (f *floor) saw(seq int64) { f.seen = max(f.seen, seq) }

// page is what a batch of messages means for the cursor.
type page struct {
	lane  *lane
	no    int     // pages of a lane are numbered in the order in which they were read
	start cursor  // inside the window, before the first message
	seqs  []int64 // of the messages
	end   cursor  // after the last message
}

// position is the cursor after the first done messages.
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

package oracle

import "time"

// order tracks the highest first receipt (or effect) of a key.
type order struct{ max int64 }

// first processes a number that is seen for the first time, and reports whether a higher one came
// before.
func (o *order) first(seq int64) (inverted bool) {
	if seq < o.max {
		return true
	}
	o.max = seq
	return false
}

// fewOverlaps bounds the effect of a broken connection: bytes that the broker reads after their
// sender has sent them again.
const fewOverlaps = 16

// replay tracks the duplicates of a key. After a crash messages are sent again from some position
// on, and new ones follow. If new messages come first, and then the old ones continue, two relays
// send concurrently. Neither necessarily causes an inversion of first receipts.
type replay struct {
	low      int64 // the last one that was sent again; 0: none
	advanced bool  // a new one came since
	overlap  overlap
}

// overlap counts how often an old series of duplicates continued after a new message.
type overlap struct {
	count int
	at    time.Time // the last time
}

func (r *replay) first() {
	if r.low > 0 {
		r.advanced = true
	}
}

// again processes a duplicate. It returns the overlap that ends with it, whose count is usually 0.
func (r *replay) again(seq, highest int64, at time.Time) (ended overlap) {
	if r.low == 0 || seq <= r.low {
		ended = r.overlap
		*r = replay{}
	} else if r.advanced {
		r.advanced = false
		r.overlap = overlap{r.overlap.count + 1, at}
	}
	r.low = seq
	if seq >= highest && ended.count == 0 {
		ended = r.overlap
		*r = replay{}
	}
	return ended
}

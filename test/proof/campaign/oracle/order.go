package oracle

import "time"

// order is how far the first receipts (or effects) of a key have come.
type order struct{ max int64 }

// first takes a number that is seen for the first time, and reports whether a higher one was there before.
func (o *order) first(seq int64) (inverted bool) {
	if seq < o.max {
		return true
	}
	o.max = seq
	return false
}

// fewOverlaps is what the remains of a broken connection can look like: bytes that the broker reads after their sender has sent them again.
const fewOverlaps = 16

// replay follows duplicates of a key. After a crash messages are sent again from some place on, and new ones follow when that is done. If new
// ones come before, and then the old ones go on, two relays send at once. Neither need cause an inversion of first receipts.
type replay struct {
	low      int64 // the last one that was sent again; 0: none is
	advanced bool  // a new one came meanwhile
	overlap  overlap
}

// overlap is how often an old row of duplicates went on after a new message.
type overlap struct {
	count int
	at    time.Time // the last time
}

func (r *replay) first() {
	if r.low > 0 {
		r.advanced = true
	}
}

// again takes a duplicate. It returns the overlap that has come to its end with it, which usually has a count of 0.
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

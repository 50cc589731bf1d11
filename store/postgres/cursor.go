package postgres

// cursor is a place in one shard of the log.
//
// With s2 empty it stands between two windows: everything visible in s1 has been passed. With s2 set it stands inside the
// window from s1 to s2: of what s2 sees and s1 does not, everything up to sequence number last has been passed.
//
// lo is the floor of s1: every message at or below it is visible in s1 or belongs to a transaction that s1 lists as in
// flight. lo2 is the floor of s2.
type cursor struct {
	s1, s2        string
	lo, lo2, last int64
}

// opened is the cursor inside the window that the snapshot ends, with nothing of it passed yet.
func (c cursor) opened(snapshot string, floor int64) cursor {
	if c.s2 != "" {
		return c
	}
	// A floor stays one for every later snapshot, so the old floor counts too.
	return cursor{s1: c.s1, lo: c.lo, s2: snapshot, lo2: max(c.lo, floor)}
}

// at is the cursor inside an open window after the message with the given sequence number.
func (c cursor) at(seq int64) cursor {
	c.last = seq
	return c
}

// closed is the cursor after all of an open window.
func (c cursor) closed() cursor { return cursor{s1: c.s2, lo: c.lo2} }

// floor finds the sequence number that is safe as the floor of a snapshot.
//
// A snapshot lists only those in-flight transactions whose ID is below its xmax. So a number f is a floor for it only if,
// after f was known to be drawn, a transaction of our own took an ID and completed, and the snapshot was taken only then:
// whoever drew a number up to f has an older ID than ours, which is below that xmax. The reads themselves are those
// transactions: when there is a higher number to gain, a read takes an ID. Numbers come from messages read, never from
// the sequence, whose last_value can be ahead of what was drawn.
type floor struct {
	safe int64 // floor for every snapshot taken from now on
	seen int64 // highest number in any message read
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

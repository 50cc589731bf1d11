package table

import (
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// ownedShard is a shard that the member holds, from when it was taken until it is lost or given up. Messages have positions in it, in
// the order in which they were handed out.
type ownedShard struct {
	token    int64
	crashes  int        // holders before this one that died without progress
	base     int        // how many messages were handed out and are settled
	inFlight []inFlight // those that are not settled, from position base on
	// known are the rows that a read must leave out: those handed out, and those that were settled while a read was under way, which
	// may have seen them wait.
	known   map[string]bool
	settled []string // rows to be forgotten when the next read begins
	// claimed are the rows that were marked and did not fit into a read: nobody but the reader changes it.
	claimed    map[string]bool
	read       time.Time
	manualFrom map[feeds.Status]*int64 // behind which place the next look at dead rows begins
}

// inFlight is a message that was handed out.
type inFlight struct {
	rowID    string
	seq      int64
	key      string
	priority int
	after    time.Time // its DeliverAfter
	enqueued time.Time
	deferred bool // it was deferred, and is not to be marked as delivered
}

// page is the Cursor of a batch: the positions of its messages, from inclusive, to exclusive.
type page struct {
	shard    *ownedShard
	from, to int
}

func newOwnedShard(token int64, crashes int) *ownedShard {
	return &ownedShard{token: token, crashes: crashes, known: make(map[string]bool), claimed: make(map[string]bool)}
}

// hand adds messages, and returns their page.
func (l *ownedShard) hand(records []record) *page {
	from := l.base + len(l.inFlight)
	for i := range records {
		r := &records[i]
		l.known[r.rowID] = true
		l.inFlight = append(l.inFlight, inFlight{
			rowID: r.rowID, seq: r.seq, key: r.OrderKey(), priority: r.Priority, after: r.DeliverAfter, enqueued: r.enqueued,
		})
	}
	return &page{l, from, from + len(records)}
}

// worthReading is false while little is wanted of a shard of which much is handed out: a read passes all of that again. A relay
// that falls behind would spend its time on it. So the shard is read when more is wanted, or a moment later.
func (l *ownedShard) worthReading(limit int, now time.Time) bool {
	return len(l.known) < 500 || limit > len(l.known)/2 || now.Sub(l.read) > 100*time.Millisecond
}

// refresh forgets what was settled before a read begins.
func (l *ownedShard) refresh() {
	for _, id := range l.settled {
		delete(l.known, id)
	}
	l.settled = l.settled[:0]
}

// target is the position up to which a mark settles the shard, which never goes back.
func (l *ownedShard) target(m feeds.Mark) (to int, stale bool) {
	if m.Batch == nil {
		return l.base, false
	}
	p, ok := m.Batch.Cursor.(*page)
	if !ok || p.shard != l {
		return l.base, true
	}
	return max(l.base, min(p.from+m.Done, p.to)), false
}

// advance forgets the messages before a position, which are settled.
func (l *ownedShard) advance(to int) {
	n := to - l.base
	for i := range l.inFlight[:n] {
		l.settled = append(l.settled, l.inFlight[i].rowID)
	}
	l.inFlight = append(l.inFlight[:0:0], l.inFlight[n:]...)
	l.base = to
}

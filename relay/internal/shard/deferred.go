package shard

import (
	"errors"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// deferrals is what leaves the window for the store's deferred messages, and what is known of the keys that have some there:
// their later messages have to follow. It has one call of the store at a time with [due], lest a key is freed and blocked at
// once.
type deferrals struct {
	blocked map[uint64]bool // hashes of keys of which messages are deferred
	wanted  []deferral      // to be deferred
	leaving map[uint64]bool // hashes of the keys of wanted
	busy    int             // how many of wanted the store is deferring now

	excluded map[postrider.ID]bool // messages of the log that an operator has decided about: they are neither sent nor deferred
	passes   bool                  // the window may have some of them

	limit    int       // how many at a time: fewer after a failure, to find out which one it is
	failures int       // in a row
	deferred int       // messages so far
	next     time.Time // nothing before then
}

// deferral is a message of the window that is to be deferred.
type deferral struct {
	pos int
	key uint64
	feeds.Deferral

	refused int       // how often the store has refused it alone, and was known to work in between,
	last    time.Time // when it last did,
	others  int       // how many others it had deferred until then,
	cause   string    // and why
	bare    bool      // it is to be deferred without its content
}

// request is what the store is asked for.
func (w *deferral) request() feeds.Deferral {
	if !w.bare {
		return w.Deferral
	}
	return feeds.Deferral{
		Batch: w.Batch, Index: w.Index, Status: feeds.StatusDead, Attempts: w.Attempts, Bare: true,
		Cause: "the store could not defer it: " + w.cause,
	}
}

// lastResort is how often the store may refuse one message alone before the message is deferred without its content. Otherwise it
// would stop the shard for good.
const lastResort = 5

// refuse notes that the store has refused the first message alone, and reports whether it is to be tried at once without its
// content. A refusal counts if the store was seen to work since the one before, lest an outage costs content: it has deferred others,
// or has renewed the lease.
func (d *deferrals) refuse(err error, now, renewed time.Time) bool {
	w := &d.wanted[0]
	if w.bare || timedOut(err) {
		w.bare = false
		return false
	}
	counts := w.refused == 0 || d.deferred > w.others || renewed.After(w.last)
	if counts {
		w.refused++
	}
	w.last, w.others, w.cause = now, d.deferred, err.Error()
	w.bare = counts && w.refused >= lastResort
	return w.bare
}

// timedOut reports whether nobody has answered: a table that is locked, say.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// postpone lets others go before the first one, which the store refuses alone, and those of its key behind it.
func (d *deferrals) postpone() {
	first := d.wanted[0]
	isBehind := func(w deferral) bool { return w.pos == first.pos || first.key != 0 && w.key == first.key }
	behind := slices.DeleteFunc(slices.Clone(d.wanted), func(w deferral) bool { return !isBehind(w) })
	d.wanted = append(slices.DeleteFunc(d.wanted, isBehind), behind...)
}

// note finds out of which keys messages leave, after some have left.
func (d *deferrals) note() {
	clear(d.leaving)
	for _, w := range d.wanted {
		if w.key != 0 {
			d.leaving[w.key] = true
		}
	}
}

// free unblocks keys of which nothing is deferred any more. One that has messages in wanted is blocked again when they are.
func (d *deferrals) free(keys []string) {
	for _, key := range keys {
		delete(d.blocked, hashText(key))
	}
}

// due is what comes back from the store's deferred messages: those whose time has come, and probes of names that are held. They
// go in calls of their own, so that what has failed before holds up nothing else.
type due struct {
	queue   []feeds.Deferred   // to be sent
	call    []feeds.Deferred   // being sent
	done    []feeds.Conclusion // to be told to the store
	telling int                // how many of done the store is being told now

	// By place in the log, how many calls had confirmed anything when a message last failed that may be to blame, of up to
	// mostSeen messages.
	seen map[int64]uint32

	failures int       // in a row, of the destination or of the store
	next     time.Time // nothing before then
}

const mostSeen = 1000

// blame returns whether others of a message's name, which was last confirmed by a certain call, have passed since it last failed;
// it has failed again.
func (d *due) blame(seq int64, passed, calls uint32) bool {
	before, known := d.seen[seq]
	if d.seen == nil || len(d.seen) >= mostSeen {
		d.seen = make(map[int64]uint32)
	}
	d.seen[seq] = calls
	return known && int32(passed-before) > 0
}

package shard

import (
	"errors"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// deferrals tracks the messages that leave the window to be deferred, and the keys with deferred
// messages: their later messages must be deferred too. Calls of the store for deferrals and for
// [due] never overlap, so that a key is not freed and blocked at the same time.
type deferrals struct {
	blocked map[uint64]bool // hashes of keys with deferred messages
	wanted  []deferral      // messages to defer
	leaving map[uint64]bool // hashes of the keys of wanted
	busy    int             // number of messages of wanted in the running call

	sent        map[postrider.ID]bool // of wanted, confirmed: the store had deferred them, but the answer was lost
	excluded    map[postrider.ID]bool // messages of the log that an operator has handled: neither sent nor deferred
	hasExcluded bool                  // the window may contain excluded messages

	limit    int       // maximum number per call; lower after a failure, to isolate the message that causes it
	failures int       // failures in a row
	deferred int       // number of deferred messages
	next     time.Time // no call before
}

// deferral is a message of the window that is to be deferred.
type deferral struct {
	pos int
	key uint64
	feeds.Deferral

	refused int       // how often the store refused it alone while the store was known to work
	last    time.Time // time of the last refusal
	others  int       // value of deferrals.deferred at the last refusal
	cause   string    // error of the last refusal
	bare    bool      // defer it without its content
}

// request returns the deferral to send to the store.
func (w *deferral) request() feeds.Deferral {
	if !w.bare {
		return w.Deferral
	}
	return feeds.Deferral{
		Batch: w.Batch, Index: w.Index, Status: feeds.StatusDead, Attempts: w.Attempts, Bare: true,
		Cause: "the store could not defer it: " + w.cause,
	}
}

// maxRefusals is how often the store may refuse a single message before the message is deferred
// without its content. Otherwise it would stop the shard forever.
const maxRefusals = 5

// refuse records that the store refused the first message alone. It reports whether to retry at
// once without the content. A refusal counts only if the store was seen to work since the one
// before, that is, if it deferred others or renewed the lease: an outage must not cost content.
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
	w.bare = counts && w.refused >= maxRefusals
	return w.bare
}

// timedOut reports whether a call got no answer, for instance because of a locked table.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// postpone moves the first message, which the store refuses alone, and the later ones of its key to
// the end.
func (d *deferrals) postpone() {
	first := d.wanted[0]
	isBehind := func(w deferral) bool { return w.pos == first.pos || first.key != 0 && w.key == first.key }
	behind := slices.DeleteFunc(slices.Clone(d.wanted), func(w deferral) bool { return !isBehind(w) })
	d.wanted = append(slices.DeleteFunc(d.wanted, isBehind), behind...)
}

// note recomputes leaving after messages have left.
func (d *deferrals) note() {
	clear(d.leaving)
	for _, w := range d.wanted {
		if w.key != 0 {
			d.leaving[w.key] = true
		}
	}
}

// free unblocks keys that have no deferred messages any more. A key with messages in wanted is
// blocked again when these are deferred.
func (d *deferrals) free(keys []string) {
	for _, key := range keys {
		delete(d.blocked, hashText(key))
	}
}

// due holds deferred messages that are due, including probes of held names. They use separate
// calls, so that they do not delay new messages.
type due struct {
	queue     []feeds.Deferred   // to send
	asked     time.Time          // when the store was asked for the oldest of the queue
	call      []feeds.Deferred   // in flight
	done      []feeds.Conclusion // to record in the store
	recording int                // number of conclusions in the running call

	// seen holds, by sequence number, the value of names.calls when a message that may be the cause
	// last failed. It has at most mostSeen entries.
	seen map[int64]uint32

	begun   begun
	unknown map[int64]bool // sequence numbers of messages that may have arrived, which the store does not know

	failures int       // failures in a row, of the destination or of the store
	next     time.Time // no call before
}

// begun is when the oldest attempts began whose outcome the store does not know: those in flight, in
// done, being recorded, and of unknown; zero if there are none.
type begun struct{ call, done, recording, unknown time.Time }

func (b *begun) oldest() time.Time {
	return earlier(earlier(b.call, b.done), earlier(b.recording, b.unknown))
}

const mostSeen = 1000

// blame records another failure of a message, and reports whether others of its name succeeded
// since the one before. passed is the last call that confirmed a message of the name, calls the
// current one.
func (d *due) blame(seq int64, passed, calls uint32) bool {
	before, known := d.seen[seq]
	if d.seen == nil || len(d.seen) >= mostSeen {
		d.seen = make(map[int64]uint32)
	}
	d.seen[seq] = calls
	return known && int32(passed-before) > 0
}

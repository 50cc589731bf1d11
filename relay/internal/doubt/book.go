package doubt

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

const (
	mostNames   = 1000    // that are asked about former owners
	mostArrived = 500_000 // messages of former owners that are kept
	mostOpen    = 100_000 // own messages without an answer, of one name

	// mostWait is how long a name waits for a destination that answers other things but not this.
	mostWait = time.Minute

	ownTerms  = 20 // bits of a term that count the questions of one owner
	firstLeap = 1 << ownTerms
	mostTerm  = math.MaxInt64 >> 11 // a server may keep terms in floating point
)

// Book is what is known about one shard.
type Book struct {
	term, leap int64
	since      time.Time // former owners may have sent something since then; zero if all of it is known
	asked      int       // names that were asked about former owners
	names      map[string]*name
	former     map[postrider.ID]bool      // messages of former owners that have arrived
	own        map[postrider.ID]time.Time // messages that have arrived, and are to be confirmed when they are sent again; since when they may have
	deferred   map[postrider.ID]bool      // messages that were deferred although former owners may have sent them
}

// name is a queue, topic, subject or endpoint. After [Book.Close] there are only those to be asked.
type name struct {
	since   time.Time             // ask for what was stored since then before anything is sent; zero if there is nothing to ask
	open    map[postrider.ID]bool // own messages without an answer
	failing time.Time             // when it was first asked without an answer; zero if it was not

	asking bool  // an answer is on its way
	later  *name // what was recorded since it was asked: the answer does not cover it; nil if nothing was
}

// New returns the book of an owner of a shard. Its number must be higher than that of former owners.
// They may have sent something since the given time, unless it is zero.
func New(owner int64, since time.Time) *Book {
	return &Book{
		term: min(owner<<ownTerms, mostTerm), leap: firstLeap, since: since,
		names: make(map[string]*name), former: make(map[postrider.ID]bool), own: make(map[postrider.ID]time.Time),
		deferred: make(map[postrider.ID]bool),
	}
}

// Term returns the term under which to publish now.
func (b *Book) Term() int64 { return b.term }

// Since returns since when former owners may have sent something that is not known; zero if nothing
// is unknown.
func (b *Book) Since() time.Time { return b.since }

// Idle reports whether nothing is to be asked, and no message is known to have arrived.
func (b *Book) Idle() bool { return b.since.IsZero() && len(b.names) == 0 && len(b.own) == 0 }

// Question returns those of the names that must be asked before anything is sent to them, and since
// when. Asking is done under a new [Book.Term], so that calls of our own that are still under way
// are fenced too.
func (b *Book) Question(names []string) (ask []string, since time.Time) {
	for _, text := range names {
		n := b.names[text]
		if n == nil && !b.since.IsZero() {
			n = &name{since: b.since}
			b.names[text] = n
		}
		if n == nil || n.since.IsZero() {
			continue
		}
		n.asking = true
		ask = append(ask, text)
		if since.IsZero() || n.since.Before(since) {
			since = n.since
		}
	}
	if len(ask) > 0 {
		b.term = min(b.term+1, mostTerm)
	}
	return ask, since
}

// Found records that one of the names has stored a message.
func (b *Book) Found(names []string, id postrider.ID) {
	b.Arrived(id)
	for _, text := range names {
		if n := b.names[text]; n != nil && n.open[id] {
			b.own[id] = n.since
			return
		}
	}
}

// Arrived records that a message was confirmed that a former owner may have left in the log as well.
func (b *Book) Arrived(id postrider.ID) {
	if !b.since.IsZero() && len(b.former) < mostArrived {
		b.former[id] = true
	}
}

// Answer records the answer for one name. It returns an error if nothing may be sent to the name
// before it has been asked again, and a note for operators if messages may come twice.
func (b *Book) Answer(text string, err error, now time.Time) (wait, note error) {
	n := b.names[text]
	if n == nil {
		return nil, nil
	}
	later := n.later
	if n.asking, n.later = false, nil; later != nil {
		defer func() { // after a failure, all of it is asked again
			for id := range later.open {
				b.Record(text, id, later.since)
			}
		}()
	}
	switch {
	case err == nil:
		if len(b.former) >= mostArrived {
			note = fmt.Errorf("more than %d messages have arrived", mostArrived)
		}
	case err == broker.ErrCannotRecall: //nolint:errorlint // without a reason it never can, which is no news
	case errors.Is(err, broker.ErrCannotRecall):
		note = err
	case errors.Is(err, broker.ErrFenced):
		b.Fenced(b.term)
		return err, nil
	default:
		if n.failing.IsZero() {
			n.failing = now
		}
		if postrider.ScopeOf(err) == postrider.ScopeDestination || now.Sub(n.failing) < mostWait {
			return err, nil
		}
		note = err
	}
	*n = name{}
	if b.since.IsZero() {
		delete(b.names, text)
	} else if b.asked++; b.asked >= mostNames {
		note = fmt.Errorf("messages go to more than %d names", mostNames)
		b.Close()
	}
	return nil, note
}

// Has reports whether a message has arrived, so that it need not be sent. After doubts about former
// owners have ended, it says so once.
func (b *Book) Has(id postrider.ID) bool {
	_, own := b.own[id]
	delete(b.own, id)
	return own || b.former[id]
}

// Record records that it is unknown whether a message has arrived, of a call that began at the given
// time.
func (b *Book) Record(text string, id postrider.ID, began time.Time) {
	n := b.names[text]
	if n == nil {
		n = &name{}
		b.names[text] = n
		if !b.since.IsZero() {
			n.since = b.since
		}
	}
	if n.asking {
		if n.later == nil {
			n.later = &name{}
		}
		n = n.later
	}
	if n.since.IsZero() || began.Before(n.since) {
		n.since = began
	}
	if n.open == nil {
		n.open = make(map[postrider.ID]bool)
	}
	if len(n.open) < mostOpen {
		n.open[id] = true
	}
}

// Unsure returns since when a message may have arrived without an answer; zero if it is known that it
// has not.
func (b *Book) Unsure(text string, id postrider.ID) time.Time {
	n := b.names[text]
	if since, ok := b.own[id]; ok {
		return since
	}
	switch {
	case n != nil && n.open[id]:
		return n.since
	case n != nil && n.later != nil && n.later.open[id]:
		return n.later.since
	case b.former[id], !b.since.IsZero() && (n == nil || !n.since.IsZero()):
		return b.since
	}
	return time.Time{}
}

// Defer records that a message is deferred: it will be sent again when doubts about former owners
// have ended.
func (b *Book) Defer(text string, id postrider.ID) {
	if b.since.IsZero() || len(b.deferred) >= mostOpen {
		return
	}
	b.deferred[id] = true
	if b.names[text] == nil {
		b.names[text] = &name{since: b.since}
	}
}

// Fenced handles the refusal of a call under a term. It returns true if a question of our own was
// the reason: then the messages were just too early. Otherwise the terms are raised beyond those of
// an owner that was higher, such as one from before the database was restored from a backup: the
// caller still owns the shard, or it could not have made the call.
func (b *Book) Fenced(term int64) (own bool) {
	if term < b.term {
		return true
	}
	b.term = min(b.term+b.leap, mostTerm)
	b.leap *= 16
	return false
}

// Close ends doubts about former owners: all messages that they can have sent are confirmed or
// deferred, or are to be repeated.
func (b *Book) Close() {
	for id := range b.deferred {
		if b.former[id] {
			b.own[id] = b.since
		}
	}
	b.since = time.Time{}
	clear(b.deferred)
	clear(b.former)
	maps.DeleteFunc(b.names, func(_ string, n *name) bool { return n.since.IsZero() })
}

// Waits reports whether a name has yet to be asked.
func (b *Book) Waits() bool {
	for _, n := range b.names {
		if !n.since.IsZero() {
			return true
		}
	}
	return false
}

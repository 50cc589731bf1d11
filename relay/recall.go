package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/relay/internal/doubt"
	"github.com/postrider/postrider/store/feeds"
)

// recallTimeout limits one question to the destination, which may have to read a lot.
const recallTimeout = 30 * time.Second

// inFlight is how long a new owner takes at most to send again what a former one had in flight, while
// the destination accepts deferred messages: it was due then, and is due now.
const inFlight = time.Minute

const mostSeen = 10_000 // entries of recaller.seen

// recaller publishes the messages of one shard. Before it sends a message that may have arrived
// already, it asks the destination, which at the same time fences former owners that may still be
// sending it.
type recaller struct {
	pub    postrider.Publisher
	nameOf func(*postrider.Message) string
	log    *slog.Logger
	sender string
	life   context.Context // ends with the worker
	asking chan struct{}   // holds a token while the destination is asked

	former time.Time // former owners may have sent deferred messages since then; zero if they have not
	until  time.Time // no message that becomes due later was in flight then

	mu      sync.Mutex
	book    *doubt.Book
	seen    map[postrider.ID]bool // deferred messages of which the book knows what is known
	reached int                   // number of messages read when the reader was first at the end of the log; negative before
}

// newRecaller returns a recaller for a shard whose former owners may have sent something since a
// time, unless it is zero.
func newRecaller(life context.Context, s *session, log *slog.Logger, sender string, owner int64, since time.Time) *recaller {
	r := &recaller{
		pub: s.pub, nameOf: s.nameOf, log: log, sender: sender, life: life, asking: make(chan struct{}, 1),
		book: doubt.New(owner, since), reached: -1, former: since, until: time.Now().Add(inFlight), seen: make(map[postrider.ID]bool),
	}
	if r.nameOf == nil {
		r.nameOf = func(*postrider.Message) string { return "" }
	}
	return r
}

// since returns since when former owners may have sent something that is not known; zero if nothing
// is unknown. If this owner dies too, the next one asks about it.
func (r *recaller) since() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	if r.former.IsZero() {
		return r.book.Since()
	}
	return r.former
}

// expire ends the doubts about deferred messages when they are over.
func (r *recaller) expire() {
	if time.Now().After(r.until) {
		r.former = time.Time{}
	}
}

// noneDeferred records that no message is deferred that a former owner may have had in flight.
func (r *recaller) noneDeferred() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.former = time.Time{}
}

// doubts reports whether former owners may have sent or deferred messages of the log that come.
func (r *recaller) doubts() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.book.Since().IsZero()
}

// reach records that the reader is at the end of the log: former owners can have sent nothing beyond
// the messages that were read, whose number is given. It reports whether that is news.
func (r *recaller) reach(read int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.book.Since().IsZero() || r.reached >= 0 {
		return false
	}
	r.reached = read
	return true
}

// pass records how many messages are confirmed or deferred. Doubts about former owners end with the
// last one that they can have sent.
func (r *recaller) pass(passed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.book.Since().IsZero() && r.reached >= 0 && passed >= r.reached && !r.book.Waits() {
		r.book.Close()
	}
}

// postpone records that messages are deferred, and sets since when they may have arrived.
func (r *recaller) postpone(all []feeds.Deferral) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.book.Idle() && r.former.IsZero() {
		return
	}
	for i := range all {
		m := &all[i].Batch.Messages[all[i].Index]
		name := r.nameOf(m)
		all[i].Sent = r.book.Unsure(name, m.ID)
		r.know(m.ID)
		r.book.Defer(name, m.ID)
	}
}

// resume records which deferred messages may have arrived: since the given times, or because a former
// owner had them in flight when it ended.
func (r *recaller) resume(msgs []postrider.Message, since []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	for i := range msgs {
		m := &msgs[i]
		if m.Repetition != "" || r.seen[m.ID] { // it is meant to come again, or the book knows what is known
			continue
		}
		switch {
		case i < len(since) && !since[i].IsZero():
			r.know(m.ID)
			r.book.Record(r.nameOf(m), m.ID, since[i])
		case !r.former.IsZero():
			r.know(m.ID)
			r.book.Record(r.nameOf(m), m.ID, r.former)
		}
	}
}

// hold sets since when messages may have arrived that are held without an attempt.
func (r *recaller) hold(done []feeds.Conclusion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range done {
		if c := &done[i]; c.Status == feeds.StatusHeld && c.Sent.IsZero() {
			c.Sent = r.former
		}
	}
}

// know adds a message to seen. To forget one costs a question at most.
func (r *recaller) know(id postrider.ID) {
	if len(r.seen) >= mostSeen {
		clear(r.seen)
	}
	r.seen[id] = true
}

// tried records the outcome of attempts at deferred messages. It returns since when those that have
// failed may have arrived; nil if none may.
func (r *recaller) tried(msgs []postrider.Message, errs []error) (since []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.book.Idle() && r.former.IsZero() {
		return nil
	}
	since = make([]time.Time, len(msgs))
	for i := range msgs {
		if i < len(errs) && errs[i] != nil {
			since[i] = r.book.Unsure(r.nameOf(&msgs[i]), msgs[i].ID)
			if postrider.ScopeOf(errs[i]) == postrider.ScopeDestination {
				r.until = time.Now().Add(inFlight) // nothing can be sent now
			}
		} else {
			r.book.Arrived(msgs[i].ID)
		}
	}
	return since
}

// prepare asks about a message, if that is necessary, before the start of its attempt is recorded:
// a relay that ends while it asks has not been killed by the message. It returns an error if the
// destination has not answered.
func (r *recaller) prepare(ctx context.Context, m *postrider.Message) error {
	r.mu.Lock()
	idle := r.book.Idle()
	r.mu.Unlock()
	if idle {
		return nil
	}
	waits, err := r.ask(ctx, []postrider.Message{*m})
	if err != nil {
		return errAsking(err)
	}
	return waits[r.nameOf(m)]
}

// publish sends messages that may have arrived only if the destination does not have them. Those
// that it has count as confirmed.
func (r *recaller) publish(ctx context.Context, msgs []postrider.Message) []error {
	r.mu.Lock()
	idle := r.book.Idle()
	r.mu.Unlock()
	if idle {
		return r.send(ctx, msgs)
	}
	waits, err := r.ask(ctx, msgs)
	if err != nil {
		return slices.Repeat([]error{errAsking(err)}, len(msgs))
	}
	errs := make([]error, len(msgs))
	part, places := r.choose(msgs, waits, errs)
	if len(part) > 0 {
		for i, err := range r.send(ctx, part) {
			errs[places[i]] = err
		}
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// choose returns the messages to be sent and their places. The others have arrived, or get an error:
// their name has not been answered, or an earlier message of their key has to wait.
func (r *recaller) choose(msgs []postrider.Message, waits map[string]error, errs []error) (part []postrider.Message, places []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(map[string]bool) // keys
	for i := range msgs {
		m := &msgs[i]
		key := m.OrderKey()
		switch err := waits[r.nameOf(m)]; {
		case err != nil:
			errs[i] = err
			held[key] = key != ""
		case held[key]:
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
		case m.Repetition != "" || !r.book.Has(m.ID): // a replay is meant to come again
			part, places = append(part, *m), append(places, i)
		}
	}
	return part, places
}

// ask asks the destination about the names of the messages, if that is necessary. It returns the
// names that must wait.
func (r *recaller) ask(ctx context.Context, msgs []postrider.Message) (waits map[string]error, err error) {
	select {
	case r.asking <- struct{}{}: // questions fence each other
		defer func() { <-r.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var names []string
	for i := range msgs {
		if name := r.nameOf(&msgs[i]); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	r.mu.Lock()
	names, since := r.book.Question(slices.Compact(names))
	term, former := r.book.Term(), !r.book.Since().IsZero()
	r.mu.Unlock()
	if len(names) == 0 {
		return nil, nil
	}
	began := time.Now()
	call, cancel := context.WithTimeout(broker.WithSender(r.life, broker.Sender{Name: r.sender, Term: term}), recallTimeout)
	defer cancel()
	stored := 0
	errs := broker.Recall(call, r.pub, names, since, func(id string) { //nolint:contextcheck // an answer takes longer than a call may
		stored++
		if id, err := postrider.ParseID(id); err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.book.Found(names, id)
		}
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	waits = make(map[string]error)
	answered := 0
	for i, name := range names {
		var err error
		if len(errs) > 0 {
			err = errs[i]
		}
		if err == nil {
			answered++
		}
		wait, note := r.book.Answer(name, err, time.Now())
		if wait != nil && postrider.ScopeOf(wait) == postrider.ScopeUnknown {
			wait = postrider.NameUnavailable(fmt.Errorf("%s: %w", asking, wait))
		}
		if waits[name] = wait; note != nil {
			r.log.Warn("relay: cannot find out which messages have arrived, some may come twice", "name", name, "err", note)
		}
	}
	level := slog.LevelDebug
	if former && answered > 0 {
		level = slog.LevelInfo
	}
	r.log.Log(ctx, level, "relay: asked the destination what has arrived", "names", len(names), "answered", answered, "since", since,
		"stored", stored, "took", time.Since(began).Round(time.Millisecond))
	return waits, nil
}

const asking = "asking the destination what has arrived"

// errAsking is the error of messages that have to wait for an answer.
func errAsking(err error) error {
	return postrider.Unavailable(fmt.Errorf("%s: %w", asking, err))
}

// send publishes messages and records those whose outcome is unknown, without replays: the
// destination would report their messages, which have arrived before.
func (r *recaller) send(ctx context.Context, msgs []postrider.Message) []error {
	r.mu.Lock()
	term := r.book.Term()
	r.mu.Unlock()
	began := time.Now()
	errs := r.pub.Publish(broker.WithSender(ctx, broker.Sender{Name: r.sender, Term: term}), msgs)
	if len(errs) != len(msgs) {
		return errs
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fenced, own := false, false
	for i, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, broker.ErrFenced):
			if !fenced {
				fenced, own = true, r.book.Fenced(term)
			}
			if own {
				errs[i] = postrider.Unavailable(postrider.ErrNotTried)
			}
		case postrider.ClassOf(err) == postrider.ClassUnknown && msgs[i].Repetition == "":
			r.book.Record(r.nameOf(&msgs[i]), msgs[i].ID, began)
		}
	}
	return errs
}

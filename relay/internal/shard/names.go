package shard

import (
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

const (
	// mostHeld bounds how many names of a shard are held. Messages of others wait one by one.
	mostHeld = 100
	// mostNames bounds how many names are watched, and watchedFor is for how long without a failure.
	mostNames  = 1000
	watchedFor = time.Minute
)

// names is what is known of the queues, topics, subjects and endpoints that messages go to. Only those are watched of which
// something has failed lately: while nothing fails, no message is asked for its name.
type names struct {
	of      func(*postrider.Message) string // nil if all have one
	watched map[string]*name
	calls   uint32 // that have confirmed anything
	held    int
	last    *postrider.Message // that the last call has confirmed; nil behind one that has confirmed nothing

	problems map[string]*feeds.Problem // what has happened since it was last reported
	open     map[string]bool           // names of which a problem was reported that is not over
}

// name is one of them.
type name struct {
	passed   uint32       // the last call that has confirmed a message of it
	refused  int          // messages in a row that were refused for good at their first attempt
	failedAt time.Time    // the last failure
	failed   postrider.ID // the last message that has failed; zero if the name has passed one since
	several  bool         // others have failed besides, and none has passed: it is not the fault of one
	held     bool
	failures int       // probes in a row that have failed
	probeAt  time.Time // when the next one is due
	probed   int64     // where the last one stands in the log: the next is of another message, lest one that is to blame goes on failing
	probing  bool      // one has been asked for
}

func (n *names) nameOf(m *postrider.Message) string {
	if n.of == nil {
		return ""
	}
	return n.of(m)
}

// watch returns what is known of a name, from now on.
func (n *names) watch(text string) *name {
	if n.watched == nil {
		n.watched = make(map[string]*name)
	}
	known := n.watched[text]
	if known == nil {
		known = new(name)
		n.watched[text] = known
	}
	return known
}

// fail takes in that a message of the name has failed.
func (n *name) fail(m *postrider.Message, now time.Time) {
	n.several = n.several || !n.failed.IsZero() && n.failed != m.ID
	n.failed, n.failedAt = m.ID, now
}

// pass takes in that a call has confirmed a message of the name.
func (n *name) pass(call uint32) {
	n.passed, n.refused = call, 0
	n.failed, n.several = postrider.ID{}, false
}

// note takes in which messages of a call were confirmed, after all that have failed are being watched. A held name of which any
// were is not held any more.
func (n *names) note(call []postrider.Message, errs []error, passed int) {
	if passed == 0 {
		return
	}
	n.calls++
	for i := range call {
		if answer(errs, i) == nil {
			n.last = &call[i]
			break
		}
	}
	if n.calls == 1 {
		n.end("") // of what a relay before this one may have reported
	}
	n.over("")
	if len(n.watched) == 0 {
		return
	}
	for i := range call {
		if answer(errs, i) != nil {
			continue
		}
		text := n.nameOf(&call[i])
		known := n.watched[text]
		if known == nil {
			continue
		}
		known.pass(n.calls)
		n.over(text)
		if known.held {
			known.held = false
			n.held--
		}
	}
}

// passedBefore reports whether the call before has confirmed a message of another name than all of a call that has confirmed
// nothing: then others may well pass now. Several names would speak of an outage, and so does a second such call.
func (n *names) passedBefore(call []postrider.Message, passed int) bool {
	last := n.last
	if passed > 0 || last == nil {
		return false
	}
	n.last = nil
	text := n.nameOf(&call[0])
	for i := range call {
		if n.nameOf(&call[i]) != text {
			return false
		}
	}
	return n.nameOf(last) != text
}

// mayPass reports whether a message goes to a name that is not known to fail. In an outage each name is tried once.
func (n *names) mayPass(msgs []postrider.Message) bool {
	if n.of == nil || len(n.watched) >= mostNames {
		return false
	}
	return slices.ContainsFunc(msgs, func(m postrider.Message) bool {
		known := n.watched[n.of(&m)]
		return known == nil || known.failed.IsZero()
	})
}

// hold keeps the messages of a name from being sent, but for probes. It reports false if too many names are held.
func (n *names) hold(text string, now time.Time, retry *Retry) bool {
	known := n.watch(text)
	if !known.held {
		if n.held == mostHeld {
			return false
		}
		n.held++
		known.held, known.failures = true, 0
	}
	known.failures++
	known.probing = false
	known.probeAt = now.Add(retry.after(known.failures))
	return true
}

// isHeld reports whether a message goes to a name that is held.
func (n *names) isHeld(m *postrider.Message) (text string, held bool) {
	if n.held == 0 {
		return "", false
	}
	text = n.nameOf(m)
	known := n.watched[text]
	return text, known != nil && known.held
}

// heldNames returns the names that are held, and those of them a probe of which is due.
func (n *names) heldNames(shard int, now time.Time) []feeds.HeldName {
	if n.held == 0 {
		return nil
	}
	var all []feeds.HeldName
	for text, known := range n.watched {
		if known.held {
			known.probing = !known.probeAt.After(now)
			all = append(all, feeds.HeldName{Shard: shard, Name: text, Probe: known.probing, After: known.probed})
		}
	}
	return all
}

// nextProbe returns when the next probe is due; the zero time if no name is held.
func (n *names) nextProbe() (at time.Time) {
	if n.held > 0 {
		for _, known := range n.watched {
			if known.held {
				at = earlier(at, known.probeAt)
			}
		}
	}
	return at
}

// forget stops watching what has not failed for a while.
func (n *names) forget(now time.Time) {
	for text, known := range n.watched {
		if !known.held && (now.Sub(known.failedAt) > watchedFor || len(n.watched) > mostNames) {
			delete(n.watched, text)
		}
	}
}

// trouble notes failures of a name, or of the destination, to be reported.
func (n *names) trouble(text string, err error) {
	if n.problems == nil {
		n.problems, n.open = make(map[string]*feeds.Problem), make(map[string]bool)
	}
	p := n.problems[text]
	if p == nil || p.Failures == 0 {
		if len(n.open) >= mostNames && !n.open[text] {
			return
		}
		p = &feeds.Problem{Name: text}
		n.problems[text] = p
	}
	p.Failures++
	p.Cause = err.Error()
	n.open[text] = true
}

// over notes that a name, or the destination, accepts messages.
func (n *names) over(text string) {
	if len(n.open) > 0 && n.open[text] {
		n.end(text)
	}
}

// end is over for what may have been reported by others.
func (n *names) end(text string) {
	if n.problems == nil {
		n.problems, n.open = make(map[string]*feeds.Problem), make(map[string]bool)
	}
	delete(n.open, text)
	n.problems[text] = &feeds.Problem{Name: text}
}

// takeProblems returns what is to be reported.
func (n *names) takeProblems() []feeds.Problem {
	if len(n.problems) == 0 {
		return nil
	}
	all := make([]feeds.Problem, 0, len(n.problems))
	for _, p := range n.problems {
		all = append(all, *p)
	}
	clear(n.problems)
	slices.SortFunc(all, func(a, b feeds.Problem) int { return strings.Compare(a.Name, b.Name) })
	return all
}

package shard

import (
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

const (
	// mostHeld is the maximum number of held names of a shard. Messages of further names are
	// deferred one by one.
	mostHeld = 100
	// mostNames is the maximum number of watched names. watchedFor is how long a name is watched
	// after its last failure.
	mostNames  = 1000
	watchedFor = time.Minute
)

// names is the state of the queues, topics, subjects and endpoints that messages go to. It watches
// only names that failed recently: while nothing fails, no name is computed.
type names struct {
	of      func(*postrider.Message) string // nil if all messages have the same name
	watched map[string]*name
	calls   uint32 // number of calls that confirmed anything
	held    int
	last    *postrider.Message // confirmed by the last call; nil if that confirmed nothing

	problems map[string]*feeds.Problem // changes since the last report
	open     map[string]bool           // names with a reported problem that is not over
}

// name is the state of one name.
type name struct {
	passed   uint32       // number of the last call that confirmed a message of it
	refused  int          // messages in a row that were rejected permanently at their first attempt
	failedAt time.Time    // time of the last failure
	failed   postrider.ID // the last message that failed; zero if one has succeeded since
	several  bool         // several messages failed and none succeeded since: not the fault of one message
	held     bool
	failures int       // failed probes in a row
	probeAt  time.Time // time of the next probe
	// probed is the position in the log of the last probe. The next one uses another message, in
	// case the message itself is the cause.
	probed  int64
	probing bool // a probe was requested
}

func (n *names) nameOf(m *postrider.Message) string {
	if n.of == nil {
		return ""
	}
	return n.of(m)
}

// watch returns the state of a name, and creates it if needed.
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

// fail records that a message of the name failed.
func (n *name) fail(m *postrider.Message, now time.Time) {
	n.several = n.several || !n.failed.IsZero() && n.failed != m.ID
	n.failed, n.failedAt = m.ID, now
}

// pass records that a call confirmed a message of the name.
func (n *name) pass(call uint32) {
	n.passed, n.refused = call, 0
	n.failed, n.several = postrider.ID{}, false
}

// note records which messages of a call were confirmed, and releases their names if held. All
// failed names of the call must be watched before.
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
		n.resolveReported("") // also resolves problems that an earlier relay reported
	}
	n.resolve("")
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
		n.resolve(text)
		if known.held {
			known.held = false
			n.held--
		}
	}
}

// passedBefore reports whether this call, all to one name, confirmed nothing after the previous
// call had confirmed a message of another name. Then the destination probably still works. A call
// to several names, or a second failed call in a row, indicates an outage.
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

// mayPass reports whether a message goes to a name that is not known to fail. During an outage each
// name is tried once.
func (n *names) mayPass(msgs []postrider.Message) bool {
	if n.of == nil || len(n.watched) >= mostNames {
		return false
	}
	return slices.ContainsFunc(msgs, func(m postrider.Message) bool {
		known := n.watched[n.of(&m)]
		return known == nil || known.failed.IsZero()
	})
}

// hold defers the messages of a name until a probe succeeds. It reports false if too many names are
// held.
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

// isHeld reports whether the name of a message is held.
func (n *names) isHeld(m *postrider.Message) (text string, held bool) {
	if n.held == 0 {
		return "", false
	}
	text = n.nameOf(m)
	known := n.watched[text]
	return text, known != nil && known.held
}

// heldNames returns the held names and marks those whose probe is due.
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

// nextProbe returns the time of the next probe; zero if no name is held.
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

// forget stops watching names that have not failed for watchedFor.
func (n *names) forget(now time.Time) {
	for text, known := range n.watched {
		if !known.held && (now.Sub(known.failedAt) > watchedFor || len(n.watched) > mostNames) {
			delete(n.watched, text)
		}
	}
}

// addProblem records a failure of a name, or of the destination if text is empty, to be reported.
func (n *names) addProblem(text string, err error) {
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

// resolve records that a name, or the destination, accepts messages again.
func (n *names) resolve(text string) {
	if len(n.open) > 0 && n.open[text] {
		n.resolveReported(text)
	}
}

// resolveReported is like resolve, and also covers problems that another relay may have reported.
func (n *names) resolveReported(text string) {
	if n.problems == nil {
		n.problems, n.open = make(map[string]*feeds.Problem), make(map[string]bool)
	}
	delete(n.open, text)
	n.problems[text] = &feeds.Problem{Name: text}
}

// takeProblems returns the changes since the last report.
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

package shard

import "github.com/postrider/postrider"

const (
	// ownTries is how often a message must fail for an unknown reason before it counts against the
	// message that others succeed.
	ownTries = 2
	// massRefusal is how many different messages in a row a name must reject permanently before the
	// name counts as the cause.
	massRefusal = 20
	// fewKeys is the maximum number of failing keys, with nothing else to try, that does not count
	// as an outage.
	fewKeys = 10
)

// outcome is the decision about a failed message.
type outcome int

const (
	stays  outcome = iota // stays in the window and is sent again
	counts                // the message is the cause: defer it and count the attempt
	waits                 // the message is not known to be the cause: defer it alone, uncounted
	holds                 // the name is the cause: defer all its messages, uncounted
)

// evidence is what the machine knows about a failed message besides the error.
type evidence struct {
	tries   int  // failures of the message, this one included
	same    bool // others of its name succeeded, in the same call or since its last failure
	others  bool // others of any name succeeded
	held    bool // its name is held
	refused int  // messages of its name rejected permanently in a row, this one included
	full    bool // nothing can be read until messages leave the window
	few     bool // everything in the window fails, and it has few keys
}

// classify decides what to do with a failed message. The class and scope of the error come first;
// without them, the evidence decides:
//
//   - A failure is not counted against a message while no other message of its name succeeds,
//     unless the publisher reports the message as the cause. If a name rejects every message, not
//     even that counts.
//   - Nothing leaves the window while nothing succeeds, so that an outage causes no writes. Only if
//     the window is full, and the cause may be a part of its keys or names, some messages leave it
//     to let others be tried.
func classify(err error, e evidence) outcome {
	class, scope := postrider.ClassOf(err), postrider.ScopeOf(err)
	switch {
	case class == postrider.ClassPermanent && (e.held || e.refused > massRefusal):
		return holds
	case class == postrider.ClassPermanent:
		return counts
	case scope == postrider.ScopeName && !e.same:
		if e.held || e.others || e.full {
			return holds
		}
		return stays
	case e.tries < ownTries && RetryAfter(err) == 0:
		return stays
	case e.same && class == postrider.ClassUnavailable && scope != postrider.ScopeName:
		return waits
	case e.same:
		return counts
	case e.held || e.others:
		return holds
	case e.full && e.few:
		return waits
	}
	return stays
}

// fewFail reports whether every open message has failed or waits for one that has, and they have at
// most n keys.
func (w *window) fewFail(n int) bool {
	seen := make(map[uint64]bool)
	keyless := 0
	for pos := w.first; pos < w.end; pos++ {
		s := w.order.at(pos)
		switch {
		case !w.order.isOpen(pos):
		case s.key != 0 && seen[s.key]:
		case s.state == fresh:
			return false
		case s.key == 0:
			keyless++
		default:
			seen[s.key] = true
		}
		if len(seen)+keyless > n {
			return false
		}
	}
	return true
}

package shard

import "github.com/postrider/postrider"

const (
	// ownTries is how often a message must fail, of which nobody knows why, before the passing of others counts against it.
	ownTries = 2
	// massRefusal is how many messages in a row a name must refuse for good, one after the other at their first attempt, before
	// that is its own fault and not theirs.
	massRefusal = 20
	// fewKeys is the most keys that can fail, with nothing else to try, before that is an outage.
	fewKeys = 10
)

// verdict says what becomes of a message that has failed.
type verdict int

const (
	stays  verdict = iota // in the window, to be sent again
	counts                // it is to blame: it is deferred, and the attempt is counted
	waits                 // it is not: it is deferred alone, uncounted
	holds                 // its name is to blame: all messages of it wait, uncounted
)

// evidence is what else is known when a message has failed.
type evidence struct {
	tries   int  // its failures so far, this one included
	same    bool // others of its name have passed, with it or since its last failure
	others  bool // others of any name have
	held    bool // its name is held
	refused int  // messages of its name refused for good in a row, this one included
	full    bool // nothing more can be read until something leaves the window,
	few     bool // and all that is there fails, of few keys
}

// judge decides whose fault a failure is. What the publisher knows decides; where it knows nothing, evidence does:
//
//   - Nothing is counted against a message while no other of its name passes, unless the publisher knows that the message is
//     to blame; and not even then if all are refused alike.
//   - Nothing leaves the window while nothing passes: an outage is waited for without a write. Only a full window, of which a
//     part of the keys or names may be the cause, makes room to find out.
func judge(err error, e evidence) verdict {
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

// fewFail reports whether all that is to be confirmed has failed or waits for what has, and is of no more than n keys.
func (w *window) fewFail(n int) bool {
	seen := make(map[uint64]bool)
	loose := 0
	for pos := w.first; pos < w.end; pos++ {
		s := w.order.at(pos)
		switch {
		case !w.order.isOpen(pos):
		case s.key != 0 && seen[s.key]:
		case s.state == fresh:
			return false
		case s.key == 0:
			loose++
		default:
			seen[s.key] = true
		}
		if len(seen)+loose > n {
			return false
		}
	}
	return true
}

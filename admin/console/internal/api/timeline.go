package api

import (
	"cmp"
	"slices"
	"time"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// Step is a past or future event in the life of a message.
type Step struct {
	At     time.Time `json:"at,omitzero"`
	Kind   string    `json:"kind" enum:"occurred,enqueued,scheduled,attempt,deferred,dead,parked,published,received,acted,due"`
	Where  string    `json:"where,omitempty" doc:"feed or consumer"`
	Text   string    `json:"text"`
	Detail string    `json:"detail,omitempty"`
}

// timeline returns everything that is known of a message in the order of time. Steps without a time
// come last.
func timeline(j *Journey) []Step {
	steps := []Step{}
	add := func(at time.Time, kind, where, text, detail string) {
		steps = append(steps, Step{at, kind, where, text, detail})
	}
	if m := &j.Message; !m.OccurredAt.IsZero() && (j.EnqueuedAt.IsZero() || m.OccurredAt.Before(j.EnqueuedAt)) {
		add(m.OccurredAt, "occurred", "", "occurred", "")
	}
	if !j.EnqueuedAt.IsZero() {
		add(j.EnqueuedAt, "enqueued", "", "written to the log", "")
	}
	if m := &j.Message; !m.DeliverAfter.IsZero() {
		add(m.DeliverAfter, "scheduled", "", "not to be delivered before", "")
	}
	for i := range j.Feeds {
		leg := j.Feeds[i]
		if slices.ContainsFunc(j.Records, func(e AuditEntry) bool { return e.Feed == leg.Feed && e.At.After(leg.Settled) }) {
			leg.Settled = time.Time{} // the relay passed it, and an operator sent it later, at an unknown time
		}
		steps = append(steps, stepsOf(&leg)...)
	}
	for _, r := range j.Receipts {
		add(r.At, "received", r.Consumer, "handled by "+r.Consumer, "")
	}
	for i := range j.Records {
		e := &j.Records[i]
		add(e.At, "acted", e.Feed, e.Action+" by "+e.Who, e.Why)
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		if a.At.IsZero() != b.At.IsZero() {
			return cmp.Compare(boolRank(a.At.IsZero()), boolRank(b.At.IsZero()))
		}
		return a.At.Compare(b.At)
	})
	return steps
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stepsOf returns the steps for one feed. Of several attempts, only the time of the last one is
// known.
func stepsOf(l *Leg) []Step {
	var steps []Step
	where, carried := l.Feed, "relay"
	if name := inbox.ConsumerOf(l.Feed); name != "" {
		where, carried = name, "consumer"
	}
	add := func(at time.Time, kind, text, detail string) {
		steps = append(steps, Step{at, kind, where, text, detail})
	}
	if !l.DeferredAt.IsZero() {
		add(l.DeferredAt, "deferred", "deferred by the "+carried, "")
	}
	if l.Attempts > 0 && !l.TriedAt.IsZero() {
		add(l.TriedAt, "attempt", phrase.Quantity(l.Attempts, "attempt", "attempts")+" so far, the last one here", l.LastError)
	}
	last := l.TriedAt
	if last.Before(l.DeferredAt) {
		last = l.DeferredAt
	}
	switch l.Status {
	case feeds.StatusPublished:
		add(l.Settled, "published", "recorded as delivered", "")
	case feeds.StatusDead:
		add(last, "dead", "moved to dead letters", l.LastError)
	case feeds.StatusParked:
		add(last, "parked", "parked by an operator", "")
	default: // not delivered yet
	}
	if !l.AvailableAt.IsZero() && l.Status != feeds.StatusPublished {
		add(l.AvailableAt, "due", "due", "")
	}
	return steps
}

package oracle

import (
	"cmp"
	"errors"
	"slices"
	"sort"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

const (
	// reach is how long after its heal a fault may still have effects at brokers, if its recovery
	// was not seen.
	reach = 30 * time.Second
	// grace is how long after a recovery duplicates may still be on their way.
	grace = 5 * time.Second
)

// span is a fault from its begin to its heal.
type span struct {
	record.Event           // of its begin
	heal         time.Time // zero: never
	recovered    time.Time // zero: not recorded
	named        bool      // an operator could read its cause
	silence      time.Duration
	again        int64 // of the messages that were asked for again, those that have not come
}

// ready returns when the fault had fully begun.
func (s *span) ready() time.Time { return s.At.Add(time.Duration(s.Seconds * float64(time.Second))) }

// hinders reports whether this fault may delay messages.
func (s *span) hinders() bool {
	return slices.ContainsFunc(s.Touches, func(t string) bool { return t != record.Producer && t != record.Consumer })
}

// covers reports whether the fault was active at a time, or was healed less than the given duration
// before.
func (s *span) covers(at time.Time, after time.Duration) bool {
	return !at.Before(s.At) && (s.heal.IsZero() || at.Sub(s.heal) < after)
}

// repeats reports whether messages may come again at a time because of the fault: until it has
// recovered.
func (s *span) repeats(at time.Time) bool {
	if s.recovered.IsZero() || s.heal.IsZero() {
		return s.covers(at, reach)
	}
	return !at.Before(s.At) && at.Sub(s.recovered) < grace
}

// faults are the faults of a run, in order of their begin.
type faults struct {
	spans []*span
	reach []time.Time // until when any span up to this one covers: ends the search backwards
}

func readFaults(r *record.Reader) (*faults, error) {
	f := &faults{}
	byNumber := map[int]*span{}
	for e, err := range r.Timeline() {
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err != nil {
			return nil, err
		}
		s := byNumber[e.Fault]
		switch {
		case e.Phase == record.Begin:
			s = &span{Event: e, again: e.Again}
			byNumber[e.Fault] = s
			f.spans = append(f.spans, s)
		case s == nil:
		case e.Phase == record.Heal:
			s.heal = e.At
		case e.Phase == record.Recovered:
			s.recovered = e.At
		case e.Phase == record.Named:
			s.named, s.silence = true, time.Duration(e.Seconds*float64(time.Second))
		}
	}
	slices.SortStableFunc(f.spans, func(a, b *span) int { return cmp.Or(a.At.Compare(b.At), a.Fault-b.Fault) })
	var latest time.Time
	for _, s := range f.spans {
		until := s.heal.Add(reach)
		if later := s.recovered.Add(grace); later.After(until) {
			until = later
		}
		if s.heal.IsZero() {
			until = time.Unix(1<<40, 0)
		}
		if until.After(latest) {
			latest = until
		}
		f.reach = append(f.reach, latest)
	}
	return f, nil
}

// near calls a function with the faults that cover a time, the latest first, until it returns
// false.
func (f *faults) near(at time.Time, after time.Duration, each func(*span) bool) {
	f.search(at, func(s *span) bool { return s.covers(at, after) }, each)
}

// search is near for any condition that no fault meets before its begin, or after its reach.
func (f *faults) search(at time.Time, meets, each func(*span) bool) {
	first := sort.Search(len(f.spans), func(i int) bool { return f.spans[i].At.After(at) })
	for i := first - 1; i >= 0 && f.reach[i].After(at); i-- {
		if s := f.spans[i]; meets(s) && !each(s) {
			return
		}
	}
}

// find returns the latest fault that covers a time and passes a test, or nil.
func (f *faults) find(at time.Time, after time.Duration, test func(*span) bool) (found *span) {
	f.near(at, after, func(s *span) bool {
		if test(s) {
			found = s
		}
		return found == nil
	})
	return found
}

// explains returns the fault that explains a duplicate at a destination: one that touches it, the
// database or a relay, and has not recovered, unless relays stopped cleanly.
func (f *faults) explains(at time.Time, destination string) (found *span) {
	f.search(at, func(s *span) bool {
		return s.repeats(at) && !s.Clean && s.Touch(record.Database, record.Relay, destination)
	},
		func(s *span) bool { found = s; return false })
	return found
}

// asked returns the fault in which an operator asked for messages again, if not all of them have
// come. Each such fault touches one destination.
func (f *faults) asked(at time.Time, destination string) *span {
	return f.find(at, reach, func(s *span) bool { return s.Touch(destination) && s.again > 0 })
}

// zombie returns the fault after which a replaced relay may have resumed.
func (f *faults) zombie(at time.Time) *span {
	return f.find(at, reach, func(s *span) bool { return s.Zombie })
}

func (f *faults) kinds() map[string]int {
	kinds := map[string]int{}
	for _, s := range f.spans {
		kinds[s.Kind]++
	}
	return kinds
}

// stopped returns the clean stop during which an unexplained duplicate arrived.
func (f *faults) stopped(at time.Time) string {
	if s := f.find(at, reach, func(s *span) bool { return s.Clean }); s != nil {
		return ", near a clean stop: " + s.Kind + " of " + s.Target
	}
	return ""
}

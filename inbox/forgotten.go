package inbox

import "time"

// Forgotten is what a store has forgotten of a consumer, by the times of message IDs. A message is late if the consumer has
// forgotten one that was made at the same time or later: then it may have been received. So a new consumer, or one that was
// stopped for long, takes all that its topic still has.
//
// What was made long before the consumer began is history, and is forgotten apart: otherwise a consumer that takes longer than
// a window to read an old topic would find the rest of it late, as soon as it forgets the first message that is new.
type Forgotten struct {
	// Began is a window before the consumer was made known.
	Began time.Time
	// Since and History are when the youngest forgotten message was made: from Began on, and before.
	Since, History time.Time
}

// Late reports whether a message made at that time may be forgotten. The zero time, of IDs that tell none, is never late.
func (f *Forgotten) Late(made time.Time) bool {
	return !made.IsZero() && !made.After(*f.of(made))
}

// Note takes note that a message made at that time is forgotten.
func (f *Forgotten) Note(made time.Time) {
	if last := f.of(made); made.After(*last) {
		*last = made
	}
}

func (f *Forgotten) of(made time.Time) *time.Time {
	if made.Before(f.Began) {
		return &f.History
	}
	return &f.Since
}

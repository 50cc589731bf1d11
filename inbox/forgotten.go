package inbox

import "time"

// Forgotten records which received messages a store has forgotten of a consumer, by the times in
// their IDs. A message is late if the consumer has forgotten one that was created at the same time
// or later: the message itself may have been received and forgotten. A consumer that is new, or
// that was stopped for long, has forgotten little, so it handles everything that its topic still
// holds.
//
// Messages created before Began are history and are tracked separately. Otherwise, a consumer that
// takes longer than a window to read an old topic would find the rest of it late as soon as it
// forgets its first new message.
type Forgotten struct {
	// Began is one window before the consumer was registered.
	Began time.Time
	// Since is the creation time of the newest forgotten message created at or after Began; History
	// is that of the newest one created before Began.
	Since, History time.Time
}

// Late reports whether a message created at that time may be forgotten. The zero time, of an ID
// that contains no time, is never late.
func (f *Forgotten) Late(made time.Time) bool {
	return !made.IsZero() && !made.After(*f.of(made))
}

// Note records that a message created at that time is forgotten.
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

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/postrider/postrider"
)

// Find returns messages for business rows that lack their effect: rows with since <= time < until,
// at most limit of them, in any order. It reads through tx and writes nothing. Every message has
// its natural DedupKey, the same one as when the row was written.
//
// If there is much to find, it is called for parts of the window.
type Find[Tx any] func(ctx context.Context, tx Tx, since, until time.Time, limit int) ([]postrider.Message, error)

// Job configures a job of a [Reconciler].
type Job[Tx any] struct {
	// Name identifies the job in all processes. It consists of letters, digits, - and _. Required.
	Name string
	// Schedule is when the job is due; see [Every] and [Cron]. One run makes up for all missed
	// ones. Defaults to every 5 minutes.
	Schedule Schedule
	// Window is how far back the job looks. Defaults to 24 hours.
	Window time.Duration
	// Grace is the minimum age of a row, so that the job ignores messages that are still in
	// transit. Defaults to 5 minutes.
	Grace time.Duration
	// Find finds rows without their effect. Either Find or Check is required.
	Find Find[Tx]
	// Check finds and resends lost messages by other means; see [Unreceived] and [Unheld].
	Check Check
	// Again applies to a row whose message was enqueued before, and is still remembered by the
	// outbox, but that lacks its effect: the message was lost behind the outbox. The job sends it
	// as a new message with the dedup key "key#reconciler:1", then 2 and so on. Defaults to never
	// with Find, and to 3 times, an hour apart, with Check.
	Again Again
	// Batch is the maximum number of messages that one transaction sends. Defaults to 100.
	Batch int
	// Limit is the maximum number of messages that one run sends. Defaults to 10000.
	Limit int
	// Rate is the average number of messages per second that a run sends; negative means no limit.
	// Defaults to 100.
	Rate int
	// Timeout is the time limit of one transaction. Defaults to 30 seconds.
	Timeout time.Duration
}

var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)

// Validate returns all errors in the configuration of the job.
func (j Job[Tx]) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	d := j.withDefaults()
	if !jobName.MatchString(j.Name) {
		wrong("Name is %q: want letters, digits, - and _, at most 63 of them", j.Name)
	}
	switch {
	case j.Find == nil && j.Check == nil:
		wrong("neither Find nor Check is given")
	case j.Find != nil && j.Check != nil:
		wrong("Find and Check contradict each other: want one")
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Window", j.Window}, {"Grace", j.Grace}, {"Timeout", j.Timeout}, {"Again.After", j.Again.After}} {
		if f.value < 0 {
			wrong("%s is %v: want more than 0", f.name, f.value)
		}
	}
	if d.Window <= d.Grace {
		wrong("Window %v and Grace %v contradict each other: nothing lies between", d.Window, d.Grace)
	}
	if j.Batch < 0 {
		wrong("Batch is %d: want more than 0", j.Batch)
	}
	if j.Limit < 0 {
		wrong("Limit is %d: want more than 0", j.Limit)
	}
	if j.Again.Max < 0 {
		wrong("Again.Max is %d: want 0 or more", j.Again.Max)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("reconcile: job %s: %w", j.Name, err)
	}
	return nil
}

func (j Job[Tx]) withDefaults() Job[Tx] {
	fill(&j.Window, 24*time.Hour)
	fill(&j.Grace, 5*time.Minute)
	fill(&j.Timeout, 30*time.Second)
	fill(&j.Again.After, time.Hour)
	fill(&j.Batch, 100)
	fill(&j.Limit, 10_000)
	fill(&j.Rate, 100)
	if j.Schedule == nil {
		j.Schedule = Every(5 * time.Minute)
	}
	if j.Check != nil {
		fill(&j.Again.Max, 3)
		j.Again.AtOnce = true
	}
	return j
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

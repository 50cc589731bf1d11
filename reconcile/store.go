package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store coordinates the reconcilers of all processes: when a job is due, who runs it, and its
// result. Only the store's clock counts. Implementations are safe for concurrent use.
type Store[Tx any] interface {
	// Announce registers a job. If it is new or its schedule has changed, its next due time is what
	// first returns for the store's time; otherwise nothing changes.
	Announce(ctx context.Context, job, schedule string, first func(now time.Time) time.Time) error

	// Claim claims a job for the time of a lease. It returns a [*NotYetError] if another claim is
	// valid, or if the job is not due and now is not set.
	Claim(ctx context.Context, job, holder string, lease time.Duration, now bool) (Claim, error)

	// Count adds to the counts of a claim, in the caller's transaction, and renews the claim. It
	// returns [ErrLost] if another process has claimed the job; the caller must roll back.
	Count(ctx context.Context, tx Tx, c Claim, n Counts) error

	// Again decides, in the caller's transaction, which messages may be sent again now, and returns
	// the number of each repetition: 0 if it may not.
	Again(ctx context.Context, tx Tx, c Claim, keys []string, a Again) ([]int, error)

	// Finish ends a claim, records the result of the run, and sets when the job is due next; a zero
	// next leaves that unchanged. It removes entries of Again that were not used for the given
	// time. It returns [ErrLost] if another process has claimed the job.
	Finish(ctx context.Context, c Claim, next time.Time, forget time.Duration, failure string) error

	// Jobs returns all announced jobs, sorted by name.
	Jobs(ctx context.Context) ([]State, error)
}

// Claim is the right to run a job until its lease expires.
type Claim struct {
	Job    string
	Holder string
	Token  int64 // larger than that of every earlier claim
	Now    time.Time
	Lease  time.Duration
}

// Counts are the results of a run.
type Counts struct {
	Found int64 `json:"found"` // rows or messages without their effect
	Fixed int64 `json:"fixed"` // messages sent for them
}

// Add adds n to c.
func (c *Counts) Add(n Counts) {
	c.Found += n.Found
	c.Fixed += n.Fixed
}

// Again limits how often a message may be sent again although it was sent before. The zero value
// means never.
type Again struct {
	// Max is the maximum number of repetitions. Defaults to 0.
	Max int
	// After is the minimum time between repetitions, and before the first one. Defaults to 1 hour.
	After time.Duration
	// AtOnce allows the first repetition as soon as the message is first missed. Defaults to false.
	AtOnce bool
}

// State is the state of a job.
type State struct {
	Job      string    `json:"job"`
	Schedule string    `json:"schedule"`
	Next     time.Time `json:"next"`
	Holder   string    `json:"holder,omitempty"` // process that runs it now
	Until    time.Time `json:"until,omitzero"`   // end of its lease
	Runs     int64     `json:"runs"`             // finished runs
	Failed   int64     `json:"failed"`           // those that ended with an error
	Total    Counts    `json:"total"`

	Last Run `json:"last"`
}

// Run is one run of a job.
type Run struct {
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	Holder   string    `json:"holder,omitempty"`
	Counts
	Error string `json:"error,omitempty"`
}

var (
	// ErrLost means that another process has taken the job over, because its claim was not renewed
	// within the lease.
	ErrLost = errors.New("reconcile: the job has been taken over by another runner")
	// ErrNotYet matches every [*NotYetError].
	ErrNotYet = errors.New("reconcile: the job cannot be run now")
	// ErrNoJob means that no process has announced a job of that name.
	ErrNoJob = errors.New("reconcile: there is no such job")
)

// NotYetError reports why a job cannot be claimed now. It matches [ErrNotYet].
type NotYetError struct {
	Job    string
	Holder string        // process that runs it; empty if it is not due
	Wait   time.Duration // until it is due, or until the lease of the other claim expires
}

func (e *NotYetError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("reconcile: job %s is due in %s", e.Job, e.Wait.Round(time.Millisecond))
	}
	return fmt.Sprintf("reconcile: job %s is being run by %s", e.Job, e.Holder)
}

// Is makes errors.Is(err, ErrNotYet) true.
func (e *NotYetError) Is(target error) bool { return target == ErrNotYet }

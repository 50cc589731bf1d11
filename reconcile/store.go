package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Store keeps what reconcilers of all processes have to agree on: when a job is due, who runs it, and what came of it. Its clock
// is the only one that counts. Implementations are safe for concurrent use.
type Store[Tx any] interface {
	// Announce makes a job known. If it is new, or has had another schedule, it is due when first says, which is given the
	// store's time; otherwise nothing changes.
	Announce(ctx context.Context, job, schedule string, first func(now time.Time) time.Time) error

	// Claim takes a job for a while. It returns a [*NotYetError] when the job is not due, unless now is set, or when another
	// claim on it lives.
	Claim(ctx context.Context, job, holder string, lease time.Duration, now bool) (Claim, error)

	// Count adds to what a claim has found and fixed, in the caller's transaction, and renews the claim. It returns [ErrLost]
	// when the claim is another's meanwhile: the caller rolls back.
	Count(ctx context.Context, tx Tx, c Claim, n Counts) error

	// Again decides, in the caller's transaction, which facts may be told again now, and returns their numbers: 0 for one
	// that may not.
	Again(ctx context.Context, tx Tx, c Claim, keys []string, a Again) ([]int, error)

	// Finish gives a claim up and records how it has ended, and when the job is due next; the zero time leaves that as it
	// was. It forgets what Again has noted and not touched for the given time. It returns [ErrLost] when the claim is
	// another's.
	Finish(ctx context.Context, c Claim, next time.Time, forget time.Duration, failure string) error

	// Jobs returns all jobs that were announced, by name.
	Jobs(ctx context.Context) ([]State, error)
}

// Claim is the right to run a job, until its lease runs out.
type Claim struct {
	Job    string
	Holder string
	Token  int64 // larger than that of every claim before
	Now    time.Time
	Lease  time.Duration
}

// Counts is what was done.
type Counts struct {
	Found int64 `json:"found"` // facts without their effect
	Fixed int64 `json:"fixed"` // messages sent for them: found, less those that were sent before and are not to be sent again
}

// Add adds.
func (c *Counts) Add(n Counts) {
	c.Found += n.Found
	c.Fixed += n.Fixed
}

// Again says how often a fact may be told again although it was told before and is remembered. The zero value means never.
type Again struct {
	// Max is how often. Defaults to 0.
	Max int
	// After is the least time between two times, and before the first one. Defaults to 1 hour.
	After time.Duration
	// AtOnce makes the first time come when the fact is first missed. Defaults to false.
	AtOnce bool
}

// State is how a job stands.
type State struct {
	Job      string    `json:"job"`
	Schedule string    `json:"schedule"`
	Next     time.Time `json:"next"`
	Holder   string    `json:"holder,omitempty"` // who runs it now
	Until    time.Time `json:"until,omitzero"`   // until when, unless it is renewed
	Runs     int64     `json:"runs"`             // that have ended
	Failed   int64     `json:"failed"`           // of them with an error
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
	// ErrLost means that somebody else has taken the job over, because nothing was heard for longer than the lease.
	ErrLost = errors.New("reconcile: the job has been taken over by another runner")
	// ErrNotYet matches every [*NotYetError].
	ErrNotYet = errors.New("reconcile: the job cannot be run now")
	// ErrNoJob means that nobody has announced a job of that name.
	ErrNoJob = errors.New("reconcile: there is no such job")
)

// NotYetError says why a job cannot be claimed now. It matches [ErrNotYet].
type NotYetError struct {
	Job    string
	Holder string        // who runs it; empty if it is not due
	Wait   time.Duration // until it is due, or until the holder's lease runs out
}

func (e *NotYetError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("reconcile: job %s is due in %s", e.Job, e.Wait.Round(time.Millisecond))
	}
	return fmt.Sprintf("reconcile: job %s is being run by %s", e.Job, e.Holder)
}

// Is makes errors.Is(err, ErrNotYet) true.
func (e *NotYetError) Is(target error) bool { return target == ErrNotYet }

package admin

import (
	"context"
	"time"
)

// Replays send delivered messages and dead letters again, as jobs.
type Replays interface {
	// StartReplay creates a job. Nothing is sent before StepReplay or RunReplay. It is refused, with a [*RefusedError], when a
	// message is older than what consumers remember: they would take it for new.
	StartReplay(ctx context.Context, by By, r Replay) (Job, error)
	// RunReplay sends the messages of a job at its rate, until it is done, paused or cancelled, or ctx ends. Then another call
	// goes on.
	RunReplay(ctx context.Context, id int64, progress func(Job)) (Job, error)
	// SetReplay makes a job "running", "paused" or "cancelled".
	SetReplay(ctx context.Context, by By, id int64, state string) error
	// Job returns a job.
	Job(ctx context.Context, id int64) (Job, error)
	// Jobs returns up to limit jobs, newest first.
	Jobs(ctx context.Context, limit int) ([]Job, error)
}

// Replay says which messages are to be sent again.
type Replay struct {
	Filter Filter `json:"filter"`
	// Dead chooses among dead letters; otherwise among the messages that the log still holds, of one feed.
	Dead bool `json:"dead"`
	// Rate is how many messages are sent a second; 0 is no limit.
	Rate int `json:"rate"`
	// Force sends messages also if they are older than DedupWindow. It is not kept.
	Force bool `json:"-"`
	// DedupWindow is for how long consumers remember what they have seen. Defaults to 7 days.
	DedupWindow time.Duration `json:"-"`
}

// Job is a replay that was started. Delivered and Failed count what relays have reported.
type Job struct {
	ID    int64  `json:"id"`
	State string `json:"state"` // running, paused, done or cancelled
	Replay
	By       By        `json:"by"`
	Created  time.Time `json:"created"`
	Finished time.Time `json:"finished,omitzero"`
	Total    int       `json:"total"`
	Sent     int       `json:"sent"`
	// Missing is how many messages the log did not hold any more when their turn came. Such a job ends as cancelled.
	Missing   int `json:"missing,omitempty"`
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"`
}

package admin

import (
	"context"
	"time"
)

// Replays sends delivered messages and dead letters again, as jobs.
type Replays interface {
	// StartReplay creates a job. StepReplay or RunReplay sends its messages. StartReplay returns a
	// [*RefusedError] if a message is older than what consumers remember, because they would handle
	// it again.
	StartReplay(ctx context.Context, by By, r Replay) (Job, error)
	// RunReplay sends the messages of a job at its rate until the job is done, paused or cancelled,
	// or ctx ends. Another call continues the job.
	RunReplay(ctx context.Context, id int64, progress func(Job)) (Job, error)
	// SetReplay makes a job "running", "paused" or "cancelled".
	SetReplay(ctx context.Context, by By, id int64, state string) error
	// Job returns a job.
	Job(ctx context.Context, id int64) (Job, error)
	// Jobs returns up to limit jobs, newest first.
	Jobs(ctx context.Context, limit int) ([]Job, error)
}

// Replay selects the messages to send again.
type Replay struct {
	Filter Filter `json:"filter"`
	// Dead selects among dead letters; otherwise the messages of one feed that the log still holds.
	Dead bool `json:"dead"`
	// Rate is the number of messages to send per second; 0 means no limit.
	Rate int `json:"rate"`
	// Force sends messages even if they are older than DedupWindow. It is not stored.
	Force bool `json:"-"`
	// DedupWindow is how long consumers remember received messages. Defaults to 7 days.
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
	// Missing is the number of messages that the log had dropped before they could be sent. Such a
	// job ends as cancelled.
	Missing   int `json:"missing,omitempty"`
	Delivered int `json:"delivered"`
	Failed    int `json:"failed"`
}

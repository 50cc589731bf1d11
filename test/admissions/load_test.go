package admissions

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/tour"
)

// TestFailures lets 500 people apply at once, and while their applications are on the way kills the relay, the pages and the
// workers, cuts the network to the queue, deploys a new version, and has an operator mend what fails for good. Nothing is lost,
// and nobody pays or is mailed twice.
func TestFailures(t *testing.T) {
	t.Parallel() // with the other queues: all of them wait most of the time, for leases to run out and the like
	s := newStage(t, "rabbitmq")
	play(t, func(ctx context.Context) error {
		return tour.Play(ctx, s, t.Output(), 500, tour.Crash, tour.Partition, tour.Deploy, tour.DeadLetter)
	})
}

// TestQueues plays failures on the other queues: one setting is all that differs. There is no cut with asynq, which gives a task
// whose worker was cut off to another one only after a minute or two.
func TestQueues(t *testing.T) {
	for queue, incidents := range map[string][]tour.Incident{
		"nats":  {tour.Crash, tour.Partition, tour.DeadLetter},
		"asynq": {tour.Crash, tour.Deploy, tour.DeadLetter},
	} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, queue)
			play(t, func(ctx context.Context) error { return tour.Play(ctx, s, t.Output(), 250, incidents...) })
		})
	}
}

func play(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatal(err)
	}
}

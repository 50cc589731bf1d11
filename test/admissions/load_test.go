package admissions

import (
	"context"
	"testing"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/tour"
)

// TestFailures has 500 people apply at once. While their applications are processed, it kills the
// relay, the pages and the workers, cuts the network to the queue, deploys a new version, and has
// an operator repair permanent failures. No application is lost, and nobody pays or gets mail
// twice.
func TestFailures(t *testing.T) {
	t.Parallel() // with the other queues: most of the time all of them wait, for leases to expire and the like
	s := newStage(t, "rabbitmq")
	play(t, func(ctx context.Context) error {
		return tour.Play(ctx, s, t.Output(), 500, tour.Crash, tour.Partition, tour.Deploy, tour.DeadLetter)
	})
}

// TestQueues injects failures on the other queues; they differ by one setting. With asynq it does
// not cut the network, because asynq takes a minute or two to hand a cut-off worker's task to
// another one.
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

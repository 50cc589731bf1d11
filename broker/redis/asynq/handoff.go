package asynq

import (
	"context"
	"errors"
	"sync"
	"time"

	queue "github.com/hibiken/asynq"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
)

var errEnded = errors.New("asynq: the consumer has ended")

// handoff connects asynq's workers to the intake: a worker waits until the intake is done with its
// task.
type handoff struct {
	c     *Consumer
	in    *intake.Intake
	ctx   context.Context // once done, nothing more is started
	ended chan struct{}   // closed when the intake has ended
	gate  sync.RWMutex    // read-held while handing over
}

// againError returns a task to asynq for redelivery after a backoff.
type againError struct {
	error
	pause time.Duration
}

func (e *againError) Unwrap() error { return e.error }

// outage is the backoff after a failure that does not count: asynq does not report how many of
// those came before.
const outage = 5 * time.Second

// pauseOf returns the backoff before asynq delivers a task again.
func pauseOf(n int, err error, t *queue.Task) time.Duration {
	var again *againError
	if !errors.As(err, &again) {
		return queue.DefaultRetryDelayFunc(n, err, t)
	}
	if postrider.ClassOf(err) == postrider.ClassUnavailable {
		return outage
	}
	return again.pause
}

// ProcessTask implements [queue.Handler]. After the end it blocks instead of returning an error:
// asynq has put the task back in the queue.
func (h *handoff) ProcessTask(ctx context.Context, t *queue.Task) error {
	done := make(chan error, 1)
	if !h.accept(ctx, t, done) {
		<-ctx.Done()
		return errEnded
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // the task's own timeout, or its lease
		return ctx.Err()
	case <-h.ended:
	}
	select {
	case err := <-done:
		return err
	default:
		<-ctx.Done()
		return errEnded
	}
}

func (h *handoff) accept(ctx context.Context, t *queue.Task, done chan<- error) bool {
	h.gate.RLock()
	defer h.gate.RUnlock()
	failures, _ := queue.GetRetryCount(ctx)
	return h.ctx.Err() == nil && h.in.Accept(intake.Delivery{ //nolint:contextcheck // the intake has its own
		Message: h.c.message(ctx, t), Failures: failures,
		Done:   func() { done <- nil },
		Return: func(cause error, pause time.Duration) { done <- &againError{cause, pause} },
	})
}

// shut waits until no worker is handing over. The context has ended by then.
func (h *handoff) shut() {
	h.gate.Lock()
	defer h.gate.Unlock()
}

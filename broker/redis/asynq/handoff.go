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

// handoff is between asynq's workers and the intake: a worker waits until the intake is done with its task.
type handoff struct {
	c     *Consumer
	in    *intake.Intake
	ctx   context.Context // ends when nothing more is to be begun
	ended chan struct{}   // closed when the intake has ended
	gate  sync.RWMutex    // held by those who are about to hand over
}

// againError gives a task back to asynq, to be delivered again after a pause.
type againError struct {
	error
	pause time.Duration
}

func (e *againError) Unwrap() error { return e.error }

// outage is the pause after a failure that is not counted: asynq does not know how many there were before.
const outage = 5 * time.Second

// pauseOf says when asynq delivers a task again.
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

// ProcessTask implements [queue.Handler]. Asynq does not hear of errors after the end: it has put the task back.
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
	return h.ctx.Err() == nil && h.in.Accept(intake.Delivery{
		Message: h.c.message(ctx, t), Failures: failures,
		Done:   func() { done <- nil },
		Return: func(cause error, pause time.Duration) { done <- &againError{cause, pause} },
	})
}

// shut returns when nobody hands over any more. The context has ended.
func (h *handoff) shut() {
	h.gate.Lock()
	defer h.gate.Unlock()
}

package asynq

import (
	"context"
	"errors"
	"sync"

	queue "github.com/hibiken/asynq"

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

// ProcessTask implements [queue.Handler]. It only returns an error when it does not count any more: asynq has put the
// task back, or has given up on it.
func (h *handoff) ProcessTask(ctx context.Context, t *queue.Task) error {
	done := make(chan struct{})
	if !h.accept(ctx, t, func() { close(done) }) {
		<-ctx.Done()
		return errEnded
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done(): // the task's own timeout, or its lease
		return ctx.Err()
	case <-h.ended:
	}
	select {
	case <-done:
		return nil
	default:
		<-ctx.Done()
		return errEnded
	}
}

func (h *handoff) accept(ctx context.Context, t *queue.Task, done func()) bool {
	h.gate.RLock()
	defer h.gate.RUnlock()
	return h.ctx.Err() == nil && h.in.Accept(h.c.message(ctx, t), done)
}

// shut returns when nobody hands over any more. The context has ended.
func (h *handoff) shut() {
	h.gate.Lock()
	defer h.gate.Unlock()
}

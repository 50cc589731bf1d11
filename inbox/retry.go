package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// retry starts the goroutines that retry deferred messages. The first one polls the store; it wakes
// the others when it finds work.
func (in *Inbox[Tx]) retry(ctx context.Context, run *sync.WaitGroup) {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	for i := range in.cfg.Retriers {
		work.Go(func() { in.retrier(ctx, hard, i == 0) })
	}
	run.Go(func() {
		<-ctx.Done()
		late := time.AfterFunc(in.cfg.Drain, cancel)
		defer late.Stop()
		work.Wait()
		cancel()
	})
}

func (in *Inbox[Tx]) retrier(ctx, hard context.Context, polls bool) {
	for ctx.Err() == nil {
		delay := in.cfg.Poll
		a, err := in.attempt(hard)
		switch {
		case err != nil:
			in.cfg.Logger.Warn("inbox: cannot retry deferred messages", "consumer", in.name, "err", err)
		case a.Found:
			signal(in.help)
			continue
		case a.Next >= 0:
			delay = min(delay, a.Next)
		}
		if !polls {
			select {
			case <-ctx.Done():
			case <-in.help:
			}
			continue
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
		case <-in.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// busyDelay is the delay before a retry of a message whose type is at its concurrency limit.
const busyDelay = 100 * time.Millisecond

var errBusy = errors.New("inbox: concurrency limit of the message type reached")

// attempt retries one message that is due. It does not wait for a free slot: it would hold a
// database connection that the handlers in the slots may need.
func (in *Inbox[Tx]) attempt(ctx context.Context) (Attempt, error) {
	a, err := in.store.Retry(ctx, in.name, func(ctx context.Context, tx Tx, d feeds.Deferred) error {
		r := in.routeOf(d.Type)
		if r.slots != nil {
			select {
			case r.slots <- struct{}{}:
				defer func() { <-r.slots }()
			default:
				return errBusy
			}
		}
		return in.dispatch(ctx, tx, r, d.Message)
	}, in.decide)
	if err == nil && a.Found && a.Failed == nil {
		in.stats.handled.Add(1)
	}
	return a, err
}

package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/feeds"
)

const (
	// maintainEvery is how often the inbox calls [Store.Maintain].
	maintainEvery = time.Minute
	// heartbeatEvery is how often the inbox calls [Store.Heard].
	heartbeatEvery = 10 * time.Second
)

// Run receives from consumers and retries deferred messages until ctx ends. Then it waits for
// running handlers and returns nil. Run survives outages. It returns an error only if it can never
// work: no handlers, two handlers for a type, a subscription that the broker refuses permanently, a
// [*WindowError], or [feeds.ErrSchema]. Without consumers, Run only retries deferred messages, for
// an inbox that receives through [Inbox.Receive] or [Inbox.Publisher]. Run may be called again
// after it returns.
func (in *Inbox[Tx]) Run(ctx context.Context, consumers ...postrider.Consumer) error {
	if err := in.usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := in.openWithRetry(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	var run sync.WaitGroup
	errs := make([]error, len(consumers))
	for i, c := range consumers {
		run.Go(func() {
			if errs[i] = c.Consume(ctx, in.Receive); errs[i] != nil {
				cancel()
			}
		})
	}
	in.retry(ctx, &run)
	run.Go(func() { in.every(ctx, maintainEvery, "maintenance", in.store.Maintain) })
	run.Go(func() {
		in.every(ctx, heartbeatEvery, "heartbeat", func(ctx context.Context) error { return in.store.Heard(ctx, in.name, in.cfg.Process) })
	})
	run.Wait()
	return errors.Join(errs...)
}

// openWithRetry opens the inbox, and retries while the database cannot be reached.
func (in *Inbox[Tx]) openWithRetry(ctx context.Context) error {
	for {
		err := in.open(ctx)
		var window *WindowError
		if err == nil || errors.As(err, &window) || errors.Is(err, feeds.ErrSchema) {
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // ctx ended
		}
		in.cfg.Logger.Warn("inbox: cannot open, will retry", "consumer", in.name, "err", err)
		if !sleep.For(ctx, in.cfg.Poll) {
			return nil
		}
	}
}

// every calls do at an interval until ctx ends. Each call has a timeout, so that one that hangs
// does not prevent the next.
func (in *Inbox[Tx]) every(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	for {
		call, cancel := context.WithTimeout(ctx, maintainEvery)
		if err := do(call); err != nil && ctx.Err() == nil {
			in.cfg.Logger.Warn("inbox: background task failed", "consumer", in.name, "what", what, "err", err)
		}
		cancel()
		if !sleep.For(ctx, interval) {
			return
		}
	}
}

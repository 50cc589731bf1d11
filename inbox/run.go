package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

const (
	// maintainEvery is how often the store is asked to forget what is out of the window.
	maintainEvery = time.Minute
	// heardEvery is how often the process says that it is there.
	heardEvery = 10 * time.Second
)

// Run receives from consumers and tries again what was deferred, until ctx ends. Then it returns nil, when the handlers under
// way have returned. Outages never end it; it returns an error only when it can never work: handlers that are missing or
// registered twice, a subscription that is refused for good, a [*WindowError], or [feeds.ErrSchema]. Without consumers it only sees to what was deferred, for an inbox that receives through
// [Inbox.Receive] or [Inbox.Publisher]. It may be called again.
func (in *Inbox[Tx]) Run(ctx context.Context, consumers ...postrider.Consumer) error {
	if err := in.usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := in.openAtLast(ctx); err != nil || ctx.Err() != nil {
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
		in.every(ctx, heardEvery, "heartbeat", func(ctx context.Context) error { return in.store.Heard(ctx, in.name, in.cfg.Process) })
	})
	run.Wait()
	return errors.Join(errs...)
}

// openAtLast opens the inbox when its database can be reached.
func (in *Inbox[Tx]) openAtLast(ctx context.Context) error {
	for {
		err := in.open(ctx)
		var window *WindowError
		if err == nil || errors.As(err, &window) || errors.Is(err, feeds.ErrSchema) {
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		in.cfg.Logger.Warn("inbox: cannot begin yet", "consumer", in.name, "err", err)
		if !sleep(ctx, in.cfg.Poll) {
			return nil
		}
	}
}

// every does something now and then until ctx ends. A call that is never answered does not keep it from trying again.
func (in *Inbox[Tx]) every(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	for {
		call, cancel := context.WithTimeout(ctx, maintainEvery)
		if err := do(call); err != nil && ctx.Err() == nil {
			in.cfg.Logger.Warn("inbox: regular work failed", "consumer", in.name, "what", what, "err", err)
		}
		cancel()
		if !sleep(ctx, interval) {
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

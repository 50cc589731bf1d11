package inbox

import (
	"context"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// retry starts those who try again what was set aside. The first one asks the store now and then; the others are woken when
// there is more than one can do.
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

func (in *Inbox[Tx]) retrier(ctx, hard context.Context, asks bool) {
	for ctx.Err() == nil {
		pause := in.cfg.Poll
		a, err := in.attempt(hard)
		switch {
		case err != nil:
			in.cfg.Logger.Warn("inbox: cannot try again what was set aside", "consumer", in.name, "err", err)
		case a.Found:
			signal(in.help)
			continue
		case a.Next >= 0:
			pause = min(pause, a.Next)
		}
		if !asks {
			select {
			case <-ctx.Done():
			case <-in.help:
			}
			continue
		}
		timer := time.NewTimer(pause)
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

// attempt tries one message again that is due.
func (in *Inbox[Tx]) attempt(ctx context.Context) (Attempt, error) {
	a, err := in.store.Retry(ctx, in.name,
		func(ctx context.Context, tx Tx, d postrider.Deferred) error { return in.dispatch(ctx, tx, d.Message) }, in.judge)
	if err == nil && a.Found && a.Failed == nil {
		in.stats.handled.Add(1)
	}
	return a, err
}

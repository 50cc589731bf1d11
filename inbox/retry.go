package inbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// retry starts those who try again what was deferred. The first one asks the store now and then; the others are woken when
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
			in.cfg.Logger.Warn("inbox: cannot try again what was deferred", "consumer", in.name, "err", err)
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

// busy is after what pause a message is tried again whose type has as many handlers at work as may be.
const busy = 100 * time.Millisecond

var errBusy = errors.New("inbox: as many messages of the type are being handled as may be")

// attempt tries one message again that is due. It does not wait for room: it has a connection, which those may need who have the
// room.
func (in *Inbox[Tx]) attempt(ctx context.Context) (Attempt, error) {
	a, err := in.store.Retry(ctx, in.name, func(ctx context.Context, tx Tx, d feeds.Deferred) error {
		r := in.routeOf(d.Type)
		if r.room != nil {
			select {
			case r.room <- struct{}{}:
				defer func() { <-r.room }()
			default:
				return errBusy
			}
		}
		return in.dispatch(ctx, tx, r, d.Message)
	}, in.judge)
	if err == nil && a.Found && a.Failed == nil {
		in.stats.handled.Add(1)
	}
	return a, err
}

package relay

import (
	"context"
	"errors"
	"sync"
)

var errLateStop = errors.New("calls were still under way after DrainTimeout and were cancelled")

// serve runs until ctx ends, then drains and releases all workers; or until the store reports a
// reset, which it returns.
//
//nolint:contextcheck // what has begun lasts as long as the epoch
func (t *epoch) serve(ctx context.Context) error {
	defer t.cancel()
	loop, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(t.ctx, stop)()

	var fetching sync.WaitGroup
	fetching.Go(func() { t.keep(loop) })
	fetching.Go(func() { t.read(loop) })
	fetching.Go(func() { t.fetchDue(loop) })
	fetching.Go(func() { t.report(loop) })

	settling, stopSettling := context.WithCancel(t.ctx)
	defer stopSettling()
	var settler sync.WaitGroup
	settler.Go(func() { t.settle(settling) })

	<-loop.Done()
	t.drainAll()
	fetching.Wait()
	t.drainAll() // also workers of the last Balance
	t.run.Wait() // the settler still renews leases
	stopSettling()
	settler.Wait()

	if err := t.cause(); err != nil {
		return err
	}
	late := t.hard.Err() != nil
	err := t.releaseAll(ctx)
	if late {
		err = errors.Join(errLateStop, err)
	}
	return err
}

func (t *epoch) drainAll() {
	for _, w := range t.workers() {
		w.drain()
	}
}

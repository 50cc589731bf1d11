package api

import (
	"context"
	"sync"
)

// work runs background tasks. Tasks that are started before run wait for it.
type work struct {
	mu      sync.Mutex
	ctx     context.Context // nil before run
	ended   bool
	waiting []func(context.Context)
	all     sync.WaitGroup
}

func newWork() *work { return &work{} }

func (w *work) start(f func(context.Context)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
	case w.ctx == nil:
		w.waiting = append(w.waiting, f)
	default:
		w.all.Go(func() { f(w.ctx) })
	}
}

// run runs all tasks until ctx ends, and returns when they have stopped.
func (w *work) run(ctx context.Context) {
	w.mu.Lock()
	w.ctx = ctx
	for _, f := range w.waiting {
		w.all.Go(func() { f(ctx) })
	}
	w.waiting = nil
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.all.Wait()
}

// until returns a context that also ends when the background tasks stop.
func (w *work) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	running := w.ctx
	w.mu.Unlock()
	if running == nil {
		return ctx, cancel
	}
	stop := context.AfterFunc(running, cancel)
	return ctx, func() { stop(); cancel() }
}

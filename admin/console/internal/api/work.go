package api

import (
	"context"
	"sync"
)

// work is what goes on behind the requests. What was started before it runs waits for that.
type work struct {
	mu      sync.Mutex
	ctx     context.Context // while it runs
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

// run ends with ctx, and with all that was started.
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

// until returns a context that ends with another, or with what goes on behind the requests.
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

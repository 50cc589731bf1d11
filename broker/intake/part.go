package intake

import (
	"context"
	"sync"
	"time"

	"github.com/postrider/postrider/internal/slot"
)

// Part is a subset of what an [Intake] accepts, such as the messages of one partition, that can be
// dropped on its own. Parts share the intake's limits. There is no order between messages of
// different parts, even of one key.
type Part struct {
	in     *Intake
	ctx    context.Context // once done, no further message is started
	end    context.CancelFunc
	hard   context.Context // for handlers
	cancel context.CancelFunc
	run    sync.WaitGroup
	valid  func() bool // whether a handler call may start; nil means always

	// Guarded by the intake's lock.
	dropped bool
	keys    map[string][]Delivery // messages that wait behind another of their key; a key that is present is being handled
}

// Part returns a new part.
func (in *Intake) Part() *Part {
	p := &Part{in: in, keys: make(map[string][]Delivery)}
	p.ctx, p.end = context.WithCancel(in.ctx)
	p.hard, p.cancel = context.WithCancel(in.hard)
	return p
}

// PartWhile returns a new part that calls valid immediately before each handler call and skips the
// call if it returns false. The message is then dropped, with those of its key behind it. Once
// valid has returned false, it must never return true again.
func (in *Intake) PartWhile(valid func() bool) *Part {
	p := in.Part()
	p.valid = valid
	return p
}

// may reports whether a handler call may start now.
func (p *Part) may() bool { return p.ctx.Err() == nil && p.isValid() }

func (p *Part) isValid() bool { return p.valid == nil || p.valid() }

// Accept is [Intake.Accept] for a message of the part. It also returns false if the part was
// dropped.
func (p *Part) Accept(d Delivery) bool {
	key := d.Message.OrderKey()
	queued, ok := p.queue(key, d)
	if queued || !ok {
		return ok
	}
	if p.take() {
		if p.start(key, d) {
			return true
		}
		<-p.in.slots
	}
	p.free(key)
	return false
}

// queue waits for room and puts a message behind the one of its key that is being handled. If there
// is none, it marks the key as busy, and the caller must handle the message. The wait for room
// holds no slot, because waiting messages need one to make progress.
func (p *Part) queue(key string, d Delivery) (queued, ok bool) {
	in := p.in
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.full() && !p.over() {
		fewer := in.fewer
		in.mu.Unlock()
		select {
		case <-fewer:
		case <-p.ctx.Done():
		}
		in.mu.Lock()
	}
	if p.over() {
		return false, false
	}
	if key == "" {
		return false, true
	}
	waiting, busy := p.keys[key]
	if !busy {
		p.keys[key] = nil
		return false, true
	}
	p.keys[key] = append(waiting, d)
	in.wait(1, len(d.Message.Payload))
	return true, true
}

// over reports whether the part has ended. The caller holds the lock.
func (p *Part) over() bool { return p.dropped || p.in.closed || p.ctx.Err() != nil }

// take waits for a slot. It returns false if the part has ended or is no longer valid.
func (p *Part) take() bool {
	select {
	case p.in.slots <- struct{}{}:
		if p.isValid() {
			return true
		}
		<-p.in.slots
		return false
	case <-p.ctx.Done():
		return false
	}
}

// start begins to handle a message that has a slot, unless the part has ended.
func (p *Part) start(key string, d Delivery) bool {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	if p.over() {
		return false
	}
	p.in.run.Add(1)
	p.run.Go(func() {
		defer p.in.run.Done()
		p.work(key, d)
	})
	return true
}

// work handles a message and then those of its key that arrived meanwhile, one after the other in
// one slot.
func (p *Part) work(key string, d Delivery) {
	for ok := true; ok; {
		if !p.deliver(d) {
			p.free(key)
			return
		}
		d, ok = p.next(key)
	}
	<-p.in.slots
}

// free releases a key and drops the messages behind it, after the part has ended.
func (p *Part) free(key string) {
	for ok := true; ok; {
		_, ok = p.next(key)
	}
}

// next returns the oldest message waiting for the key. If there is none, it releases the key.
func (p *Part) next(key string) (d Delivery, ok bool) {
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	waiting := p.keys[key]
	if len(waiting) == 0 {
		delete(p.keys, key)
		return d, false
	}
	d, p.keys[key] = waiting[0], waiting[1:]
	p.in.wait(-1, -len(d.Message.Payload))
	return d, true
}

// deliver calls the handler until the message is done or given back. It holds a slot except during
// backoff, and returns false if it ends without one.
func (p *Part) deliver(d Delivery) bool {
	in := p.in
	state := standing{failures: d.Failures, counters: in.cfg.Counters}
	defer state.leave()
	place := &place{part: p, bytes: len(d.Message.Payload), has: true}
	ctx := slot.With(p.hard, place)
	for p.may() {
		err := Call(ctx, in.handle, d.Message)
		if err == nil {
			d.Done()
			return place.has
		}
		if !p.may() { // cancelled: the result does not count
			return place.has
		}
		pause, exhausted := in.cfg.recordFailure(&state, err)
		if exhausted && in.cfg.DeadLetters.Publisher != nil {
			if p.deadLetter(&d, state.failures, err) {
				d.Done()
				return true
			}
			exhausted = false
		}
		in.cfg.logFailure(&d.Message, &state, pause, exhausted, err)
		if d.Return != nil {
			d.Return(err, pause)
			return true
		}
		if !place.sleep(pause) {
			return false
		}
	}
	return true
}

// Drop ends the part. Waiting messages are dropped and running handlers are cancelled. Drop waits
// for those handlers and returns false if one is still running after the timeout.
func (p *Part) Drop(timeout time.Duration) bool {
	in := p.in
	in.mu.Lock()
	p.dropped = true
	for key, waiting := range p.keys {
		for i := range waiting {
			in.wait(-1, -len(waiting[i].Message.Payload))
		}
		p.keys[key] = nil
	}
	in.mu.Unlock()
	p.end()
	p.cancel()
	returned := make(chan struct{})
	go func() {
		p.run.Wait()
		close(returned)
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-returned:
		return true
	case <-timer.C:
		return false
	}
}

// Wait waits until the part is dropped or the intake's context has ended, and all of its handlers
// have returned. When the intake's context ends, handlers have DrainTimeout to finish.
func (p *Part) Wait() {
	<-p.ctx.Done()
	if p.in.ctx.Err() != nil {
		p.in.Wait()
	}
	p.run.Wait()
}

package intake

import (
	"context"
	"sync"
	"time"

	"github.com/postrider/postrider/internal/slot"
)

// Part is a part of what an [Intake] accepts, such as the messages of one partition, that can be dropped before the intake
// ends. Parts share the intake's limits. Messages of different parts are in no order, whatever their keys.
type Part struct {
	in     *Intake
	ctx    context.Context // ends when no further message is to be begun
	end    context.CancelFunc
	hard   context.Context // for handlers
	cancel context.CancelFunc
	run    sync.WaitGroup
	valid  func() bool // whether something may be begun; nil if always

	// Guarded by the intake's lock.
	dropped bool
	keys    map[string][]Delivery // what waits behind one of its key; a key that is present is being worked on
}

// Part returns a new part.
func (in *Intake) Part() *Part {
	p := &Part{in: in, keys: make(map[string][]Delivery)}
	p.ctx, p.end = context.WithCancel(in.ctx)
	p.hard, p.cancel = context.WithCancel(in.hard)
	return p
}

// PartWhile returns a new part that begins no call of the handler unless valid reports true right before. A message that it has kept
// from being begun is dropped, and others of its key behind it: once valid has reported false, it must never report true again.
func (in *Intake) PartWhile(valid func() bool) *Part {
	p := in.Part()
	p.valid = valid
	return p
}

// may says whether a call of the handler may be begun now.
func (p *Part) may() bool { return p.ctx.Err() == nil && p.isValid() }

func (p *Part) isValid() bool { return p.valid == nil || p.valid() }

// Accept is [Intake.Accept] for a message of the part. It also reports false when the part was dropped.
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

// queue waits for room and puts a message behind the one of its key that is being worked on. If there is none, it makes
// the key the caller's, who works on it. The room is waited for without a slot: those that wait need one to get on.
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

// over says whether nothing is to be begun any more. The caller holds the lock.
func (p *Part) over() bool { return p.dropped || p.in.closed || p.ctx.Err() != nil }

// take waits for a slot. It reports false if the part has ended before, or is not valid any more.
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

// start begins to work on a message, whose slot is taken, unless nothing is to be begun any more.
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

// work delivers a message and those of its key that come meanwhile, one after the other in one slot.
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

// free lets go of a key and of what waits behind it: the part has ended.
func (p *Part) free(key string) {
	for ok := true; ok; {
		_, ok = p.next(key)
	}
}

// next returns the message that has waited longest behind one of the key. The key is free if there is none.
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

// deliver calls the handler until the message is done or given back. It has a slot, except while it waits, and reports
// false if it ended without one.
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
		if !p.may() { // it was interrupted
			return place.has
		}
		pause, exhausted := in.cfg.judge(&state, err)
		if exhausted && in.cfg.DeadLetters.Publisher != nil {
			if p.bury(&d, state.failures, err) {
				d.Done()
				return true
			}
			exhausted = false
		}
		in.cfg.say(&d.Message, &state, pause, exhausted, err)
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

// Drop gives the part up. What was not begun is dropped, the context of handlers under way is cancelled, and Drop returns
// when they have returned. It reports false if one of them has not for so long.
func (p *Part) Drop(patience time.Duration) bool {
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
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-returned:
		return true
	case <-timer.C:
		return false
	}
}

// Wait returns when the part was dropped, or the intake's context has ended, and none of its handlers is at work any more. At the end
// of the intake's context they have DrainTimeout to finish.
func (p *Part) Wait() {
	<-p.ctx.Done()
	if p.in.ctx.Err() != nil {
		p.in.Wait()
	}
	p.run.Wait()
}

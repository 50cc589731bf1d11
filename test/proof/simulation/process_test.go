package simulation_test

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

var (
	errDead     = errors.New("the process is dead")
	errInjected = errors.New("injected")
)

// process is the process of a relay. All of the relay's calls go through it.
type process struct {
	w    *world
	name string

	mu     sync.Mutex
	dead   chan struct{} // closed by kill
	resume time.Time     // suspended until then
	calls  map[string]int
}

func (w *world) newProcess(name string) *process {
	return &process{w: w, name: name, dead: make(chan struct{}), calls: make(map[string]int)}
}

// kill ends the process: nothing that it does afterwards has any effect.
func (p *process) kill() {
	p.mu.Lock()
	first := !p.isDead()
	if first {
		close(p.dead)
	}
	p.mu.Unlock()
	if first { // the model calls processes under its own lock
		p.w.model.fault("%s is killed", p.name)
	}
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

func (p *process) pause(d time.Duration) {
	p.w.model.fault("%s stands still for %v", p.name, d)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resume = time.Now().Add(d)
}

// run waits while the process is suspended. It reports false if the process is dead.
func (p *process) run() bool {
	p.mu.Lock()
	rest := time.Until(p.resume)
	p.mu.Unlock()
	if rest > 0 {
		select {
		case <-time.After(rest):
			p.w.model.fault("%s goes on", p.name)
		case <-p.dead:
		}
	}
	return !p.isDead()
}

// sleep waits in the middle of a call. It returns the reason if that ended early.
func (p *process) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.dead:
		return errDead
	}
}

// chance returns the random source for a call: the same for the same call of the same plan,
// whatever else happens.
func (p *process) chance(op string) *rand.Rand {
	p.mu.Lock()
	p.calls[op]++
	n := p.calls[op]
	p.mu.Unlock()
	return p.w.chance(p.name + " " + op + " " + strconv.Itoa(n))
}

func (w *world) chance(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(w.plan.Chance, h.Sum64()))
}

// draw selects the fault of a call.
func (t trouble) draw(r *rand.Rand) string {
	n := r.IntN(1000)
	for _, c := range []struct {
		what string
		rate int
	}{{"fails", t.Fails}, {"unknown", t.Unknown}, {"slow", t.Slow}, {"hangs", t.Hangs}, {"late", t.Late}, {"refuses", t.Refuses}} {
		if n < c.rate {
			return c.what
		}
		n -= c.rate
	}
	return ""
}

func (p *process) standsStill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.resume)
}

// stoodStillSince reports whether the process is suspended, or was since a point in time.
func (p *process) stoodStillSince(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.resume.Before(at)
}

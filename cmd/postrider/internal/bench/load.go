package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider"
)

// defaultFeed is the feed of scenarios that need only one.
const defaultFeed = "default"

// load is a phase of producers at full load.
type load struct {
	first, end int64         // the numbers of its messages, end not included
	elapsed    time.Duration // until the last commit
	delivered  int64         // messages that the sink confirmed in that time
}

func (p load) committedPerSecond() float64 { return perSecond(p.end-p.first, p.elapsed) }

func (p load) deliveredPerSecond() float64 { return perSecond(p.delivered, p.elapsed) }

// loadPhase measures producers at full load.
func (l *Lab) loadPhase(ctx context.Context, p *producers, what string) (load, error) {
	defer l.counting(what, l.Phase)()
	phase := load{first: p.book.drawn()}
	delivered := p.book.delivered.Load()
	start := time.Now()
	err := p.fullLoad(ctx, l.Phase)
	phase.elapsed = time.Since(start)
	phase.end = p.book.drawn()
	phase.delivered = p.book.delivered.Load() - delivered
	return phase, err
}

// relayedPhase measures producers at full load with a running relay. It delivers the backlog before
// and after the phase, so that the phase measures a relay that keeps up.
func (l *Lab) relayedPhase(ctx context.Context, p *producers, to postrider.Publisher, what string) (phase load, err error) {
	relay, err := l.carry(ctx, defaultFeed, to)
	if err != nil {
		return load{}, err
	}
	defer func() {
		if halted := relay.halt(); err == nil && halted != nil {
			err = fmt.Errorf("bench: the relay did not stop cleanly: %w", halted)
		}
	}()
	if err := p.drain(ctx, what+", before"); err != nil {
		return load{}, err
	}
	phase, err = l.loadPhase(ctx, p, what)
	if err != nil {
		return load{}, err
	}
	return phase, p.drain(ctx, what+", after")
}

// drain waits until all committed messages have been delivered. Producers must be idle.
func (p *producers) drain(ctx context.Context, what string) error {
	return p.book.await(ctx, p.book.committed.Load(), p.lab.delivering(what))
}

// warmUp opens the connections and warms up the plan caches of the sessions, without measuring.
func (l *Lab) warmUp(ctx context.Context, p *producers) error {
	l.Progress("warming up")
	return p.fullLoad(ctx, min(time.Second, l.Phase/4))
}

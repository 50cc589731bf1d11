package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/fault"
)

// gate admits faults that are compatible with the current ones. A schedule considers that too, but
// some faults take longer than planned.
type gate struct {
	mu   sync.Mutex
	open map[int]fault.Kind // by number
}

// enter waits until a fault may begin. It returns false if that is not before the given time, or if
// ctx ends.
func (g *gate) enter(ctx context.Context, p fault.Planned, before time.Time) bool {
	for !g.try(p) {
		if time.Now().After(before) || !wait(ctx, 100*time.Millisecond) {
			return false
		}
	}
	return true
}

func (g *gate) try(p fault.Planned) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	kinds := make([]fault.Kind, 0, len(g.open))
	for _, k := range g.open {
		kinds = append(kinds, k)
	}
	if len(kinds) >= fault.AtOnce || slices.ContainsFunc(kinds, p.Kind.Excludes) {
		return false
	}
	if g.open == nil {
		g.open = map[int]fault.Kind{}
	}
	g.open[p.Number] = p.Kind
	return true
}

func (g *gate) leave(number int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, number)
}

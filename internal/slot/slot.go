// Package slot lets a handler release its concurrency slot while it only waits.
package slot

import "context"

// Slot is one of a limited number of concurrency slots.
type Slot interface {
	// Leave releases the slot, and Enter acquires one again. Enter reports false if the work has
	// ended before.
	Leave()
	Enter() bool
}

type key struct{}

// With returns a context for a handler that has a slot.
func With(ctx context.Context, s Slot) context.Context { return context.WithValue(ctx, key{}, s) }

// Wait sends to room, or returns when ctx ends. While it blocks, it releases the slot.
func Wait(ctx context.Context, room chan<- struct{}) error {
	select {
	case room <- struct{}{}:
		return nil
	default:
	}
	s, has := ctx.Value(key{}).(Slot)
	if has {
		s.Leave()
	}
	var err error
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if has && !s.Enter() && err == nil {
		err = context.Canceled
	}
	return err
}

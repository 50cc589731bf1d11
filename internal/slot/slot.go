// Package slot lets a handler give its place among those at work to another while it only waits.
package slot

import "context"

// Slot is a place among those at work, of which there are only so many.
type Slot interface {
	// Leave gives the place up, and Enter waits for one. Enter reports false if the work has ended before there was one.
	Leave()
	Enter() bool
}

type key struct{}

// With returns a context for a handler that has a slot.
func With(ctx context.Context, s Slot) context.Context { return context.WithValue(ctx, key{}, s) }

// Wait waits for what the channel has room for, or for the end of ctx. Meanwhile the slot is somebody else's.
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

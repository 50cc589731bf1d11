package api

import (
	"context"
	"time"
)

// kept caches an expensive result. Concurrent callers share one query.
type kept[T any] struct {
	good time.Duration
	turn chan struct{}
	at   time.Time
	last T
}

func newKept[T any](good time.Duration) kept[T] {
	return kept[T]{good: good, turn: make(chan struct{}, 1)}
}

func (k *kept[T]) get(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	var none T
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	defer func() { <-k.turn }()
	if !k.at.IsZero() && time.Since(k.at) < k.good {
		return k.last, nil
	}
	value, err := ask(ctx)
	if err != nil {
		return none, err
	}
	k.last, k.at = value, time.Now()
	return value, nil
}

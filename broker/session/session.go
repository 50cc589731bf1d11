// Package session keeps one connection to a broker for a publisher. The connection is opened on
// first use, shared by all callers, and reopened after it is lost.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// Session is a connection to a broker. Messages in flight on a lost session are never resent on
// another one without the caller's knowledge.
type Session interface {
	// Lost returns a channel that is closed when the connection is unusable.
	Lost() <-chan struct{}
	// Close closes the connection, lost or not. It returns soon even if the broker does not answer.
	Close()
}

// Keeper keeps a session. It is safe for concurrent use.
type Keeper[S Session] struct {
	name   string
	open   func(context.Context) (S, error)
	log    *slog.Logger
	life   context.Context
	cancel context.CancelFunc
	run    sync.WaitGroup

	mu      sync.Mutex
	current S
	held    bool // current is set
	opening *opening[S]
	down    bool // the log has reported an outage
}

// opening is an attempt to connect, shared by all waiting callers.
type opening[S Session] struct {
	done    chan struct{}
	session S
	err     error
}

// New returns a keeper of sessions with the named broker. Closing the keeper cancels the context
// passed to open. Open limits its own duration.
func New[S Session](name string, logger *slog.Logger, open func(context.Context) (S, error)) *Keeper[S] {
	k := &Keeper[S]{name: name, open: open, log: logger}
	k.life, k.cancel = context.WithCancel(context.Background())
	return k
}

var errClosed = errors.New("the publisher is closed")

// Get returns the current session, or waits for a new one until ctx ends.
func (k *Keeper[S]) Get(ctx context.Context) (S, error) {
	var none S
	k.mu.Lock()
	if k.life.Err() != nil {
		k.mu.Unlock()
		return none, fmt.Errorf("%s: %w", k.name, errClosed)
	}
	if k.held && !lost(k.current) {
		defer k.mu.Unlock()
		return k.current, nil
	}
	if k.opening == nil {
		o := &opening[S]{done: make(chan struct{})}
		k.opening = o
		old, held := k.current, k.held
		k.current, k.held = none, false
		k.run.Go(func() {
			if held {
				old.Close()
			}
			k.connect(o)
		})
	}
	o := k.opening
	k.mu.Unlock()
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return none, fmt.Errorf("%s: connecting: %w", k.name, ctx.Err())
	}
}

func (k *Keeper[S]) connect(o *opening[S]) {
	defer close(o.done)
	s, err := k.open(k.life)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opening = nil
	switch {
	case err != nil:
		o.err = fmt.Errorf("%s: connecting: %w", k.name, err)
		if !k.down && k.life.Err() == nil {
			k.log.Warn(k.name+": cannot connect, trying again with each publication", "err", err) //nolint:sloglint // one of few names
		}
		k.down = true
		return
	case k.down:
		k.log.Info(k.name + ": connected again") //nolint:sloglint // one of few names
	}
	o.session, k.current, k.held, k.down = s, s, true, false
}

func lost(s Session) bool {
	select {
	case <-s.Lost():
		return true
	default:
		return false
	}
}

// Close closes the session, aborts an attempt to open one, and waits for both. It may be called
// twice.
func (k *Keeper[S]) Close() {
	k.cancel()
	k.run.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held {
		k.held = false
		k.current.Close()
	}
}

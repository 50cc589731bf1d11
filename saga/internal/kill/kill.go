// Package kill has a saga store that simulates the crash of a process between two statements, for
// tests.
package kill

import (
	"context"
	"errors"
	"sync"

	"github.com/postrider/postrider/saga"
)

// ErrKilled is what a dead process gets from its store.
var ErrKilled = errors.New("kill: the process is dead")

// Store wraps a store as one process sees it. When the process dies, its transaction is rolled
// back, and nothing that it does reaches the database any more. It does no housekeeping.
type Store[Tx any] struct {
	saga.Store[Tx]
	// At is the boundary between two statements at which the process dies, from 1. 0 means never.
	At int

	mu   sync.Mutex
	seen int
	dead bool
}

// Point marks a boundary between two statements. It returns ErrKilled if the process dies there, or
// has died.
func (s *Store[Tx]) Point() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen++; s.seen == s.At {
		s.dead = true
	}
	if s.dead {
		return ErrKilled
	}
	return nil
}

// Dead reports whether the process has died.
func (s *Store[Tx]) Dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// Do implements [saga.Store]. The process can die before it begins, before the commit, and after
// the commit.
func (s *Store[Tx]) Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	if s.Dead() {
		return ErrKilled
	}
	err := s.Store.Do(ctx, func(ctx context.Context, tx Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}
		return s.Point()
	})
	if err != nil {
		return err
	}
	return s.Point()
}

// Take implements [saga.Store]. A call that finds nothing is no boundary: the number of such calls
// depends on timing.
func (s *Store[Tx]) Take(ctx context.Context, tx Tx, known saga.Known) (*saga.Instance, string, error) {
	if s.Dead() {
		return nil, "", ErrKilled
	}
	i, step, err := s.Store.Take(ctx, tx, known)
	if i == nil || err != nil {
		return i, step, err
	}
	return i, step, s.Point()
}

// Hold implements [saga.Store].
func (s *Store[Tx]) Hold(ctx context.Context, tx Tx, name, id, step string) (bool, error) {
	if err := s.Point(); err != nil {
		return false, err
	}
	return s.Store.Hold(ctx, tx, name, id, step)
}

// Lock implements [saga.Store].
func (s *Store[Tx]) Lock(ctx context.Context, tx Tx, name, id string) (*saga.Instance, error) {
	if err := s.Point(); err != nil {
		return nil, err
	}
	return s.Store.Lock(ctx, tx, name, id)
}

// Save implements [saga.Store].
func (s *Store[Tx]) Save(ctx context.Context, tx Tx, i *saga.Instance, c saga.Change) error {
	if err := s.Point(); err != nil {
		return err
	}
	return s.Store.Save(ctx, tx, i, c)
}

// Try implements [saga.Store].
func (s *Store[Tx]) Try(ctx context.Context, tx Tx, f func() error) error {
	if err := s.Point(); err != nil {
		return err
	}
	return s.Store.Try(ctx, tx, f)
}

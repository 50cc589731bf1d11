package inboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// retry checks that a message is retried after its backoff, that a failed attempt leaves only its
// count, and that a dead letter is not retried.
func retry[Tx any](s *scene[Tx]) {
	const pause = 300 * time.Millisecond
	m := message("k", "a")
	s.fail(m, again(1, pause))
	s.mustHandle(message("k", "b"), inbox.Waiting)
	if a := s.attempt(nil, nil); a.Found || a.Next <= 0 || a.Next > pause {
		s.t.Fatalf("got %+v, want it to be due within %s", a, pause)
	}
	attempts := 0
	s.eventually(func() bool {
		a := s.attempt(func(d feeds.Deferred) error {
			attempts = d.Attempts
			return errWork
		}, func(d feeds.Deferred, err error) inbox.Deferral {
			if !errors.Is(err, errWork) || d.ID != m.ID {
				s.t.Errorf("decide was called for %s: %v", d.ID, err)
			}
			return again(d.Attempts+1, 0)
		})
		return a.Found && errors.Is(a.Failed, errWork)
	})
	if attempts != 1 {
		s.t.Errorf("%d attempts before, want 1", attempts)
	}
	s.wantDeferred("a retry", "b waiting")
	a := s.attempt(func(d feeds.Deferred) error {
		attempts = d.Attempts
		return errWork
	}, func(d feeds.Deferred, _ error) inbox.Deferral { return dead(d.Attempts + 1) })
	if !a.Found || attempts != 2 {
		s.t.Errorf("got %+v after %d attempts, want 2", a, attempts)
	}
	s.wantDeferred("a dead", "b waiting")
	if d := s.deferred()[0]; d.Attempts != 3 || d.LastError != errWork.Error() || d.TriedAt.IsZero() || !d.AvailableAt.IsZero() {
		s.t.Errorf("%+v", d)
	}
	s.mustBeIdle()
	s.wantMarks()
}

// outage checks that attempts that do not count leave the number unchanged, and that decide
// receives the times of the last attempt, from which the next backoff and the message's age follow.
func outage[Tx any](s *scene[Tx]) {
	m := message("k", "a")
	s.fail(m, again(0, 20*time.Millisecond))
	s.mustHandle(message("k", "b"), inbox.Waiting)
	var deferred time.Time
	pause := 20 * time.Millisecond
	for range 3 {
		s.eventually(func() bool {
			a := s.attempt(func(feeds.Deferred) error { return errWork }, func(d feeds.Deferred, _ error) inbox.Deferral {
				if last := d.AvailableAt.Sub(d.TriedAt); d.ID != m.ID || d.Attempts != 0 || (last-pause).Abs() > 10*time.Millisecond {
					s.t.Errorf("%d attempts, and the last pause was %v: want 0 and %v", d.Attempts, last, pause)
				}
				if d.DeferredAt.IsZero() || !deferred.IsZero() && !d.DeferredAt.Equal(deferred) {
					s.t.Errorf("deferred at %v, then at %v", deferred, d.DeferredAt)
				}
				deferred = d.DeferredAt
				pause *= 2
				return again(0, pause)
			})
			return a.Found
		})
	}
	s.wantDeferred("a retry", "b waiting")
	s.eventually(func() bool { return s.attempt(nil, nil).Found })
	s.mustRetry("b")
	s.wantMarks("a", "b")
}

func (s *scene[Tx]) eventually(happens func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(timeout); !happens(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("timed out waiting for a condition")
		}
	}
}

// oneAtATime checks that, while a message is being retried, no other worker gets it or a later one
// of its key, and that messages of other keys are retried concurrently.
func oneAtATime[Tx any](s *scene[Tx]) {
	s.fail(message("k", "1"), again(1, 0))
	s.mustHandle(message("k", "2"), inbox.Waiting)
	s.fail(message("l", "3"), again(1, 0))
	a := s.attempt(func(d feeds.Deferred) error {
		if string(d.Payload) != "1" {
			s.t.Errorf("%q comes first", d.Payload)
		}
		s.mustRetry("3")
		s.mustBeIdle()
		return nil
	}, nil)
	if !a.Found {
		s.t.Error("not found")
	}
	s.wantMarks("3", "1")
	s.mustRetry("2")
}

// arrivals checks that no message waits forever, whatever happens at the moment it arrives: each
// takes effect once, in order.
func arrivals[Tx any](s *scene[Tx]) {
	const keys, count, retriers = 3, 40, 2
	ctx, stop := context.WithCancel(s.ctx)
	var deliver, tries sync.WaitGroup
	defer tries.Wait()
	defer stop()
	for range retriers {
		tries.Go(func() {
			for ctx.Err() == nil {
				a, err := s.Store.Retry(s.ctx, consumer, func(ctx context.Context, tx Tx, d feeds.Deferred) error {
					if d.Attempts == 1 && d.Payload[len(d.Payload)-1] == '5' {
						return errWork
					}
					return s.Mark(ctx, tx, string(d.Payload))
				}, func(d feeds.Deferred, _ error) inbox.Deferral { return again(d.Attempts+1, 0) })
				if err != nil {
					s.t.Error(err)
					return
				}
				if !a.Found {
					time.Sleep(time.Millisecond) // lets the other goroutines run
				}
			}
		})
	}
	for k := range keys {
		deliver.Go(func() {
			for n := range count {
				m := message(fmt.Sprint("k", k), fmt.Sprintf("%d %02d", k, n))
				msgs := []postrider.Message{m}
				_, err := s.Store.Handle(s.ctx, consumer, msgs, false, func(ctx context.Context, tx Tx, fresh []int) error {
					if n%5 == 0 {
						return errWork
					}
					return s.marking(msgs)(ctx, tx, fresh)
				})
				if errors.As(err, new(*inbox.FailedError)) {
					err = s.Store.Defer(s.ctx, consumer, m, again(1, 0))
				}
				if err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	deliver.Wait()
	s.eventually(func() bool { return len(s.deferred()) == 0 || s.t.Failed() })
	stop()
	tries.Wait()
	byKey := make(map[byte][]string)
	for _, mark := range s.Marks(s.ctx) {
		byKey[mark[0]] = append(byKey[mark[0]], mark)
	}
	for key, marks := range byKey {
		if len(marks) != count || !slices.IsSorted(marks) {
			s.t.Errorf("effects of key %c: %q", key, marks)
		}
	}
}

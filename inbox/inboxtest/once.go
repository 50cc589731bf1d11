package inboxtest

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

func once[Tx any](s *scene[Tx]) {
	m := message("k", "a")
	s.mustHandle(m, inbox.Handled)
	s.mustHandle(m, inbox.Repeated)
	s.mustHandle(message("k", "b"), inbox.Handled)
	s.mustHandle(m, inbox.Repeated)
	s.wantMarks("a", "b")
	s.wantDeferred()
}

// together checks that the effect and the record commit together or not at all.
func together[Tx any](s *scene[Tx]) {
	m := message("k", "a")
	for range 3 {
		_, err := s.Store.Handle(s.ctx, consumer, []postrider.Message{m}, false, func(ctx context.Context, tx Tx, _ []int) error {
			return errors.Join(errWork, s.Mark(ctx, tx, "must be undone"))
		})
		var failed *inbox.FailedError
		if !errors.As(err, &failed) || !errors.Is(failed, errWork) {
			s.t.Fatalf("got %v, want a FailedError with the error of the work", err)
		}
	}
	s.mustHandle(m, inbox.Handled)
	s.mustHandle(m, inbox.Repeated)
	s.wantMarks("a")

	cancelled, cancel := context.WithCancel(s.ctx)
	other := message("k", "b")
	_, err := s.Store.Handle(cancelled, consumer, []postrider.Message{other}, false, func(ctx context.Context, tx Tx, _ []int) error {
		defer cancel()
		return s.Mark(ctx, tx, "b")
	})
	if errors.As(err, new(*inbox.FailedError)) || err == nil {
		s.t.Errorf("got %v, want an error that is no FailedError", err)
	}
	// It is unknown whether the first call committed. The effect must happen once either way.
	if _, err := s.handle(other); err != nil {
		s.t.Fatal(err)
	}
	s.wantMarks("a", "b")
}

// concurrently checks that, of two concurrent deliveries of a message, the second waits for the
// outcome of the first.
func concurrently[Tx any](s *scene[Tx]) {
	for _, c := range []struct {
		name    string
		outcome error
		want    inbox.Verdict
	}{{"commit", nil, inbox.Repeated}, {"rollback", errWork, inbox.Handled}} {
		m := message("k", c.name)
		working, goOn := make(chan struct{}), make(chan struct{})
		first := make(chan error, 1)
		go func() {
			_, err := s.Store.Handle(s.ctx, consumer, []postrider.Message{m}, false, func(ctx context.Context, tx Tx, _ []int) error {
				close(working)
				<-goOn
				if c.outcome != nil {
					return c.outcome
				}
				return s.Mark(ctx, tx, c.name)
			})
			first <- err
		}()
		<-working
		type answer struct {
			verdicts []inbox.Verdict
			err      error
		}
		second := make(chan answer, 1)
		go func() {
			v, err := s.handle(m)
			second <- answer{v, err}
		}()
		select {
		case a := <-second:
			s.t.Errorf("%s: the second did not wait: %v, %v", c.name, a.verdicts, a.err)
			close(goOn)
			return
		case <-time.After(50 * time.Millisecond):
		}
		close(goOn)
		if err := <-first; !errors.Is(err, c.outcome) {
			s.t.Errorf("%s: first: %v", c.name, err)
		}
		a := <-second
		s.wantVerdicts(a.verdicts, a.err, c.want)
	}
	s.wantMarks("commit", "rollback")
}

func twoConsumers[Tx any](s *scene[Tx]) {
	const other = "shipping"
	if _, err := s.Store.Open(s.ctx, other); err != nil {
		s.t.Fatal(err)
	}
	at := func(name string, m postrider.Message, want inbox.Verdict) {
		s.t.Helper()
		msgs := []postrider.Message{m}
		got, err := s.Store.Handle(s.ctx, name, msgs, false, s.marking(msgs))
		s.wantVerdicts(got, err, want)
	}
	m := message("k", "a")
	at(consumer, m, inbox.Handled)
	at(other, m, inbox.Handled)
	at(other, m, inbox.Repeated)

	// A message that one consumer has deferred does not affect another consumer, even if both
	// receive it.
	second := message("k", "b")
	s.fail(second, dead(1))
	at(other, second, inbox.Handled)
	at(consumer, message("k", "c"), inbox.Waiting)
	at(other, message("k", "d"), inbox.Handled)
	a, err := s.Store.Retry(s.ctx, other, nil, nil)
	if err != nil || a.Found {
		s.t.Errorf("%+v, %v: another consumer's message is due", a, err)
	}
	s.wantDeferred("b dead", "c waiting")
	s.wantMarks("a", "a", "b", "d")
}

// claim checks that Claim records a message in the caller's own transaction.
func claim[Tx any](s *scene[Tx]) {
	m := message("", "a")
	try := func(outcome error) (fresh bool) {
		s.t.Helper()
		err := s.Do(s.ctx, func(ctx context.Context, tx Tx) (err error) {
			if fresh, err = s.Store.Claim(ctx, tx, consumer, m.ID); err != nil || !fresh {
				return err
			}
			return errors.Join(outcome, s.Mark(ctx, tx, "a"))
		})
		if !errors.Is(err, outcome) {
			s.t.Fatal(err)
		}
		return fresh
	}
	if !try(errWork) || !try(nil) || try(nil) {
		s.t.Error("want fresh, fresh after the rollback, and not fresh after the commit")
	}
	s.mustHandle(m, inbox.Repeated)
	s.wantMarks("a")

	err := s.Do(s.ctx, func(ctx context.Context, tx Tx) error {
		_, err := s.Store.Claim(ctx, tx, consumer, s.fromFuture("", "").ID)
		return err
	})
	if !errors.Is(err, inbox.ErrLate) {
		s.t.Errorf("an ID from the future: got %v, want ErrLate", err)
	}
}

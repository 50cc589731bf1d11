package memory_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/inbox/inboxtest"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

func TestInbox(t *testing.T) {
	inboxtest.Run(t, func(testing.TB) inboxtest.Subject[*memory.Tx] { return inboxSubject(0) })
}

func TestInboxWindow(t *testing.T) { inboxtest.RunWindow(t, inboxSubject(1400*time.Millisecond)) }

// inboxSubject stores effects as messages of the log, which commit together with everything else.
func inboxSubject(window time.Duration) inboxtest.Subject[*memory.Tx] {
	s := memory.Open(memory.Config{Shards: 1, InboxWindow: window})
	return inboxtest.Subject[*memory.Tx]{
		Store:       s.Inbox(),
		Window:      window,
		Do:          s.Do,
		DeadLetters: s,
		Gauges:      s,
		Mark: func(ctx context.Context, tx *memory.Tx, text string) error {
			return s.Enqueue(ctx, tx, postrider.Event("mark", postrider.Aggregate{}, []byte(text)))
		},
		Marks: func(ctx context.Context) (all []string) {
			feed, err := s.Open(ctx, postrider.NewID().String(), feeds.Member{Lease: time.Hour, Create: true})
			if err != nil {
				return []string{err.Error()}
			}
			if _, err := feed.Balance(ctx); err != nil {
				return []string{err.Error()}
			}
			batches, err := feed.Read(ctx, []feeds.Demand{{Shard: 0, Limit: 1 << 20}})
			if err != nil {
				return []string{err.Error()}
			}
			for _, b := range batches {
				for _, m := range b.Messages {
					all = append(all, string(m.Payload))
				}
			}
			return all
		},
	}
}

// markFirst is a store with a common bug: it commits the record before the effect.
type markFirst struct {
	*memory.Inbox
	do func(context.Context, func(context.Context, *memory.Tx) error) error
}

func (m markFirst) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[*memory.Tx]) ([]inbox.Verdict, error) {
	var fresh []int
	verdicts, err := m.Inbox.Handle(ctx, consumer, msgs, late, func(_ context.Context, _ *memory.Tx, all []int) error {
		fresh = all
		return nil
	})
	if err != nil || len(fresh) == 0 {
		return verdicts, err
	}
	var failed error
	err = m.do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		failed = work(ctx, tx, fresh)
		return failed
	})
	if failed != nil {
		return nil, &inbox.FailedError{Err: failed}
	}
	return verdicts, err
}

// TestSuiteNoticesRecordBeforeEffect: the suite fails for a store with that bug.
func TestSuiteNoticesRecordBeforeEffect(t *testing.T) {
	caught := inboxtest.Failures(t, func(testing.TB) inboxtest.Subject[*memory.Tx] {
		s := inboxSubject(0)
		s.Store = markFirst{s.Store.(*memory.Inbox), s.Do}
		return s
	})
	for _, want := range []string{"together", "at the same time", "batch", "arrivals and departures"} {
		if !slices.Contains(caught, want) {
			t.Errorf("caught by %q, want also by %q", caught, want)
		}
	}
	if slices.Contains(caught, "once") {
		t.Errorf("caught by %q, and there is nothing wrong with once", caught)
	}
}

package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// TestRetries checks that a failing message is retried after 2, 4 and 8 seconds and then becomes a
// dead letter, and that the messages behind it wait until an operator acts.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second}}})
		begin := time.Now()
		var at []time.Duration
		fixed := false
		h.Handle("t", func(ctx context.Context, x tx, m postrider.Message) error {
			if string(m.Payload) == "bad" && !fixed {
				at = append(at, time.Since(begin))
				return errHandler
			}
			return h.record(ctx, x, m)
		})
		stop := h.run()
		bad := message("k", "bad")
		h.receive(bad)
		h.receive(message("k", "behind"))
		h.receive(message("other", "apart"))
		h.receive(bad)
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		h.wantDeadLetters("bad dead", "behind waiting")
		if d := h.deadLetters()[0]; d.Attempts != 4 || d.LastError != errHandler.Error() {
			t.Errorf("%+v", d)
		}
		h.wantEffects("apart")
		h.wantStats(inbox.Stats{Handled: 1, Repeated: 1, Waiting: 1, Failed: 3, Dead: 1})

		fixed = true
		if n, err := h.store.Act(t.Context(), admin.By{Who: "ann"}, admin.Retry, admin.Filter{ID: bad.ID}, 0); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		time.Sleep(3 * time.Second) // the next poll
		synctest.Wait()
		h.wantDeadLetters()
		h.wantEffects("apart", "bad", "behind")
		h.receive(message("k", "next"))
		h.wantEffects("apart", "bad", "behind", "next")
		stop()
	})
}

func TestOrderSkip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Order: inbox.Skip, Retry: retry.Policy{Pauses: []time.Duration{time.Second}}})
		failures := 0
		h.Handle("t", func(ctx context.Context, x tx, m postrider.Message) error {
			if string(m.Payload) == "bad" && failures < 1 {
				failures++
				return errHandler
			}
			return h.record(ctx, x, m)
		})
		stop := h.run()
		defer stop()
		h.receive(message("k", "bad"))
		h.receive(message("k", "next"))
		h.wantEffects("next")
		time.Sleep(2 * time.Second)
		h.wantEffects("next", "bad")
	})
}

// TestDeadAtOnce covers failures that are not retried.
func TestDeadAtOnce(t *testing.T) {
	late := message("", "late")
	late.ID = madeAt(time.Now().AddDate(1, 0, 0)) // in the far future
	for _, c := range []struct {
		name  string
		m     postrider.Message
		cfg   inbox.Config
		err   error
		cause string
	}{
		{"permanent", message("", "m"), inbox.Config{}, postrider.Permanent(errHandler), errHandler.Error()},
		{"no retries", message("", "m"), inbox.Config{Retry: retry.Policy{Attempts: 1}}, errHandler, errHandler.Error()},
		{"late", late, inbox.Config{}, nil, inbox.ErrLate.Error()},
		{"unknown type", postrider.Message{ID: madeAt(time.Now()), Type: "u"}, inbox.Config{}, nil, inbox.ErrNoHandler.Error() + `: "u"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newFixture(t, c.cfg)
			h.Handle("t", func(context.Context, tx, postrider.Message) error { return c.err })
			h.receive(c.m)
			h.receive(c.m)
			all := h.deadLetters()
			if len(all) != 1 || all[0].Status != feeds.StatusDead || all[0].LastError != c.cause {
				t.Errorf("%+v", all)
			}
			if s := h.Stats(); s.Dead != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestLateAccepted(t *testing.T) {
	h := newFixture(t, inbox.Config{AcceptLate: true})
	h.Handle("t", h.record)
	late := message("", "late")
	late.ID = postrider.ID{6: 0x70, 8: 0x80, 15: 1}
	h.receive(late)
	h.receive(late)
	h.wantEffects("late")
	h.wantStats(inbox.Stats{Handled: 1, Repeated: 1})
}

func TestUnknownTypes(t *testing.T) {
	h := newFixture(t, inbox.Config{IgnoreUnknown: true})
	h.Handle("known", h.record)
	h.receive(message("", "ignored"))
	h.receive(postrider.Message{ID: madeAt(time.Now()), Type: feeds.CanaryType})
	h.wantDeadLetters()
	h.wantEffects()
	h.Handle("*", h.record)
	h.receive(message("", "all others"))
	h.wantEffects("all others")
}

func TestPanicAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t, inbox.Config{Timeout: 3 * time.Second})
		h.Handle("panics", func(context.Context, tx, postrider.Message) error { panic("a bug") })
		h.Handle("hangs", func(ctx context.Context, _ tx, _ postrider.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		for _, kind := range []string{"panics", "hangs"} {
			m := message("", kind)
			m.Type = kind
			h.receive(m)
		}
		if d := time.Since(begin); d != 3*time.Second {
			t.Errorf("it took %s", d)
		}
		h.wantDeadLetters("panics retry", "hangs retry")
		for i, want := range []string{"the handler panicked: a bug", "the handler took longer than 3s: context deadline exceeded"} {
			if got := h.deadLetters()[i].LastError; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// TestMessageInContext covers handlers that receive only the payload.
func TestMessageInContext(t *testing.T) {
	h := newFixture(t, inbox.Config{})
	m := message("k", "1")
	m.CorrelationID = "c"
	inbox.On(h.Inbox, "t", func(ctx context.Context, _ tx, n int) error {
		got, ok := inbox.Message(ctx)
		if !ok || got.ID != m.ID || got.CorrelationID != "c" || n != 1 {
			return fmt.Errorf("got %+v, %v, %d", got, ok, n)
		}
		return h.effects.add(ctx, "ok")
	})
	h.receive(m)
	h.wantEffects("ok")
	if _, ok := inbox.Message(t.Context()); ok {
		t.Error("a message outside of a handler")
	}
}

func TestMistakes(t *testing.T) {
	_, err := inbox.New[tx](nil, "", inbox.Config{
		Retry: retry.Policy{Pauses: []time.Duration{-1}}, Order: "loose", Redelivery: -1, Timeout: -1, Retriers: -1, Batch: -1, Poll: -1, Drain: -1,
	})
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	for _, want := range []string{"Retry: Pauses has -1ns", "loose", "Redelivery", "Timeout", "Retriers", "Batch", "Poll", "Drain", "name", "store"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %s", err, want)
		}
	}
}

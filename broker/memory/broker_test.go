package memory_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
)

func letter(key, text string) postrider.Message {
	return postrider.Event("letter", postrider.Aggregate{Type: "alphabet", ID: key}, []byte(text))
}

func texts(msgs []postrider.Message) []string {
	var s []string
	for _, m := range msgs {
		s = append(s, string(m.Payload))
	}
	return s
}

func TestPublishKeepsCopies(t *testing.T) {
	b := memory.New()
	m := letter("k", "abc")
	m.Headers = map[string]string{"h": "v"}
	if errs := b.Publish(t.Context(), []postrider.Message{m, letter("k", "d")}); errs != nil {
		t.Fatalf("got %v, want nil when all are accepted", errs)
	}
	spoil := func(m postrider.Message) {
		m.Payload[0] = 'X'
		m.Headers["h"] = "spoilt"
	}
	spoil(m)
	spoil(b.Messages()[0])
	got := b.Messages()
	if !slices.Equal(texts(got), []string{"abc", "d"}) || got[0].Headers["h"] != "v" || got[0].ID != m.ID {
		t.Errorf("got %v", got)
	}
	if err := b.Close(); err != nil || len(b.Messages()) != 2 {
		t.Errorf("after Close (%v) there are %d messages, want 2", err, len(b.Messages()))
	}
}

func TestFail(t *testing.T) {
	b := memory.New()
	broken := errors.New("broken")
	b.Fail(func(m postrider.Message) error {
		if string(m.Payload) == "bad" {
			return postrider.Permanent(broken)
		}
		return nil
	})
	errs := b.Publish(t.Context(), []postrider.Message{
		letter("k", "a"), letter("k", "bad"), letter("other", "b"), letter("k", "c"),
		{Type: "x", Payload: []byte("bad")}, {Type: "x", Payload: []byte("d")}, // without order
	})
	want := []postrider.Class{
		-1, postrider.ClassPermanent, -1, postrider.ClassUnavailable, postrider.ClassPermanent, -1,
	}
	if len(errs) != len(want) {
		t.Fatalf("got %d errors, want one a message", len(errs))
	}
	for i, class := range want {
		if (errs[i] == nil) != (class == -1) || (errs[i] != nil && postrider.ClassOf(errs[i]) != class) {
			t.Errorf("message %d: got %v, want class %v", i, errs[i], class)
		}
	}
	if !errors.Is(errs[1], broken) {
		t.Errorf("got %v, want the injected error", errs[1])
	}
	if got := texts(b.Messages()); !slices.Equal(got, []string{"a", "b", "d"}) {
		t.Errorf("got %q", got)
	}

	b.Fail(nil)
	if errs := b.Publish(t.Context(), []postrider.Message{letter("k", "bad"), letter("k", "c")}); errs != nil {
		t.Errorf("got %v after the failure was taken back", errs)
	}
	if !b.KeepsOrder() {
		t.Error("the broker does not declare that it keeps order")
	}
}

func TestPublishCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := memory.New()
	b.Fail(func(postrider.Message) error { cancel(); return nil })
	errs := b.Publish(ctx, []postrider.Message{letter("a", "a"), letter("b", "b")})
	if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], context.Canceled) {
		t.Errorf("got %v, want the second cancelled", errs)
	}
	if got := texts(b.Messages()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, want a", got)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New()
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for n := range 4 {
			waiting.Go(func() {
				msgs, err := b.Wait(ctx, n)
				if n <= 2 && (err != nil || len(msgs) < n) {
					t.Errorf("waiting for %d: got %d and %v", n, len(msgs), err)
				}
				if n == 3 && (!errors.Is(err, context.Canceled) || len(msgs) != 2) {
					t.Errorf("waiting for 3 in vain: got %d and %v", len(msgs), err)
				}
			})
		}
		for _, text := range []string{"a", "b"} {
			synctest.Wait()
			b.Publish(t.Context(), []postrider.Message{letter("k", text)})
		}
		synctest.Wait()
		cancel()
		waiting.Wait()
	})
}

func TestConcurrentPublish(t *testing.T) {
	b := memory.New()
	var publishing sync.WaitGroup
	for range 8 {
		publishing.Go(func() {
			for range 50 {
				b.Publish(t.Context(), []postrider.Message{letter("k", "a"), letter("k", "b")})
			}
		})
	}
	if msgs, err := b.Wait(t.Context(), 800); err != nil || len(msgs) != 800 {
		t.Errorf("got %d messages and %v", len(msgs), err)
	}
	publishing.Wait()
}

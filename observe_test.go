package postrider_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/middleware"
	store "github.com/postrider/postrider/store/memory"
)

// diary is an observer that records its calls under a name.
type diary struct {
	name  string
	lines *[]string
}

type stamp struct{ name string }

func (d diary) note(format string, args ...any) {
	*d.lines = append(*d.lines, d.name+" "+fmt.Sprintf(format, args...))
}

func (d diary) Enqueue(ctx context.Context, msgs []postrider.Message) (context.Context, func([]int, error)) {
	for i := range msgs {
		msgs[i].Headers[d.name] = "seen"
	}
	d.note("enqueue %d", len(msgs))
	return context.WithValue(ctx, stamp{d.name}, true), func(repeats []int, err error) { d.note("enqueued %v %v", repeats, err) }
}

func (d diary) Publish(ctx context.Context, feed string, msgs []postrider.Message) (context.Context, func([]error)) {
	d.note("publish %s %d", feed, len(msgs))
	return context.WithValue(ctx, stamp{d.name}, true), func(errs []error) { d.note("published %v", errs) }
}

func (d diary) Handle(ctx context.Context, consumer string, m *postrider.Message) (context.Context, func(error)) {
	d.note("handle %s %s", consumer, m.Type)
	return context.WithValue(ctx, stamp{d.name}, true), func(err error) { d.note("handled %v", err) }
}

func expectLines(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("want %q\ngot  %q", want, *got)
	}
	*got = nil
}

func TestObserveOutbox(t *testing.T) {
	var lines []string
	s := store.Open(store.Config{})
	outbox := postrider.ObserveOutbox(s, postrider.Observers(diary{"a", &lines}, diary{"b", &lines}))
	mine := postrider.UniqueEvent("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, map[string]int{"n": 1})
	mine.Headers = map[string]string{"own": "x"}
	offer := func() (repeats []int) {
		t.Helper()
		err := s.Do(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
			repeats, err = outbox.Offer(ctx, tx, mine)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return repeats
	}
	offer()
	expectLines(t, &lines, "a enqueue 1", "b enqueue 1", "b enqueued [] <nil>", "a enqueued [] <nil>")
	if len(mine.Headers) != 1 {
		t.Errorf("the caller's own message was changed: %v", mine.Headers)
	}
	if repeats := offer(); !slices.Equal(repeats, []int{0}) {
		t.Errorf("repeats %v", repeats)
	}
	expectLines(t, &lines, "a enqueue 1", "b enqueue 1", "b enqueued [0] <nil>", "a enqueued [0] <nil>")
}

func TestObservePublisher(t *testing.T) {
	var lines []string
	refused := errors.New("refused")
	var known bool
	inner := postrider.PublisherFunc(func(ctx context.Context, m postrider.Message) error {
		known, _ = ctx.Value(stamp{"a"}).(bool)
		return refused
	})
	pub := broker.ObservePublisher("default", inner, diary{"a", &lines})
	errs := pub.Publish(t.Context(), []postrider.Message{postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, nil)})
	if len(errs) != 1 || !errors.Is(errs[0], refused) || !known {
		t.Errorf("errors %v, context known %v", errs, known)
	}
	expectLines(t, &lines, "a publish default 1", "a published [refused]")
	if keeper, ok := pub.(broker.OrderKeeper); !ok || !keeper.KeepsOrder() {
		t.Error("a publisher that keeps order does not any more")
	}
	if _, ok := pub.(broker.Inspector); ok {
		t.Error("a publisher that cannot be inspected says it can")
	}
	if _, ok := broker.ObservePublisher("default", inspected{inner}, diary{"a", &lines}).(broker.Inspector); !ok {
		t.Error("a publisher that can be inspected cannot any more")
	}
}

func TestObservedPublisherHasNames(t *testing.T) {
	named := memory.New()
	nameless := postrider.PublisherFunc(func(context.Context, postrider.Message) error { return nil })
	for _, c := range []struct {
		pub  postrider.Publisher
		want string
	}{
		{named, "orders"}, {nameless, ""}, {inspected{nameless}, ""},
		{struct {
			inspected
			broker.Namer
		}{inspected{named}, named}, "orders"},
	} {
		namer, ok := broker.ObservePublisher("feed", c.pub, diary{"a", new([]string)}).(broker.Namer)
		if !ok || namer.NameOf(&postrider.Message{Type: "t", Topic: "orders"}) != c.want {
			t.Errorf("%T: the name is not %q", c.pub, c.want)
		}
	}
}

type inspected struct{ postrider.Publisher }

func (inspected) Inspect(context.Context, []string) (broker.Inspection, error) {
	return broker.Inspection{}, nil
}

func TestObserve(t *testing.T) {
	var lines []string
	broker := memory.New()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if errs := broker.Publish(ctx, []postrider.Message{postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, nil)}); errs != nil {
		t.Fatal(errs)
	}
	consumer := middleware.Use(broker.Consumer("", "billing", 1), postrider.Observe("billing", diary{"a", &lines}))
	err := consumer.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		if known, _ := ctx.Value(stamp{"a"}).(bool); !known {
			t.Error("the handler does not get the observer's context")
		}
		cancel()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expectLines(t, &lines, "a handle billing order.placed", "a handled <nil>")
}

package schema_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// TestInbox checks that a registry outage counts against no message, and that a message with an
// unknown schema becomes a dead letter.
func TestInbox(t *testing.T) {
	t.Parallel()
	g, cfg := newGate(t)
	producer := newAvro(t, newRegistry(t, cfg), orderV1)
	consumer := newAvro(t, newRegistry(t, cfg), orderV2)
	store := memory.Open(memory.Config{})
	billing, err := inbox.New(store.Inbox(), "billing", inbox.Config{
		Codecs: map[string]inbox.Codec{"": consumer, schema.ContentAvro: consumer},
		Retry:  retry.Policy{First: 20 * time.Millisecond, Most: 20 * time.Millisecond, Attempts: 2},
		Poll:   20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan OrderV2, 10)
	inbox.On(billing, "*", func(_ context.Context, _ *memory.Tx, o *OrderV2) error {
		handled <- *o
		return nil
	})
	wantHandled := func(id string) {
		t.Helper()
		select {
		case o := <-handled:
			if o.ID != id || o.Total != 700 {
				t.Errorf("got %+v, want %s", o, id)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s was not handled", id)
		}
	}
	send := func(id string, change func(m *postrider.Message)) {
		t.Helper()
		m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, nil)
		if err := producer.Encode(t.Context(), &m, Order{id, 700}); err != nil {
			t.Fatal(err)
		}
		change(&m)
		if err := billing.Receive(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	deadLetters := func() []feeds.Deferred {
		t.Helper()
		all, err := store.List(t.Context(), admin.Filter{Feed: inbox.Feed("billing")}, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	send("0", func(*postrider.Message) { g.down.Store(true) })
	if l := deadLetters(); len(l) != 1 || l[0].Status == "dead" || l[0].Attempts != 0 || !strings.Contains(l[0].LastError, "503") {
		t.Fatalf("while the registry is down: %+v", l)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- billing.Run(ctx) }()
	for begin := time.Now(); g.requests.Load() < 6; time.Sleep(time.Millisecond) { // more attempts than the retry policy counts
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("only %d requests", g.requests.Load())
		}
	}
	g.down.Store(false)
	wantHandled("0")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}

	send("1", func(m *postrider.Message) { m.ContentType = "" }) // as Confluent's serializers send it
	wantHandled("1")
	send("2", func(m *postrider.Message) { m.Payload = []byte("\x00\x7f\xff\xff\xff\x02a\x02") })
	if l := deadLetters(); len(l) != 1 || l[0].Status != "dead" || l[0].AggregateID != "2" || !strings.Contains(l[0].LastError, "/schemas/ids/2147483647") {
		t.Errorf("an unknown schema: %+v", l)
	}
}

package watermill_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/memory"
)

// recorder is an outbox that records its messages.
type recorder struct {
	ctx  context.Context
	msgs []postrider.Message
	err  error
}

func (r *recorder) Enqueue(ctx context.Context, _ string, msgs ...postrider.Message) error {
	r.ctx, r.msgs = ctx, append(r.msgs, msgs...)
	return r.err
}

func (r *recorder) Offer(ctx context.Context, tx string, msgs ...postrider.Message) ([]int, error) {
	return nil, r.Enqueue(ctx, tx, msgs...)
}

func TestEnqueuedMessage(t *testing.T) {
	r := &recorder{}
	type contextKey struct{}
	p := watermill.NewPublisher(context.WithValue(t.Context(), contextKey{}, 1), r, "tx", watermill.PublisherConfig{
		KeyMetadata: "customer", TypeMetadata: "name", TenantMetadata: "tenant", ContentType: "application/json",
		Change: func(out *postrider.Message, in *message.Message) { out.SchemaID = in.Metadata["schema"] },
	})
	in := message.NewMessage("4D47E190-0402-4048-bc2c-89dd54343cdc", []byte(`{}`))
	in.Metadata = message.Metadata{"customer": "c7", "name": "OrderPlaced", "tenant": "acme", "correlation_id": "c-1", "schema": "s"}
	plain := message.NewMessage("", nil)
	plain.Metadata = nil
	if err := p.Publish("orders", in, plain); err != nil {
		t.Fatal(err)
	}
	id, _ := postrider.ParseID("4d47e190-0402-4048-bc2c-89dd54343cdc")
	headers := map[string]string{watermill.HeaderUUID: in.UUID}
	for name, value := range in.Metadata {
		headers[name] = value
	}
	want := []postrider.Message{{
		ID: id, Type: "OrderPlaced", Topic: "orders", Key: "c7", TenantID: "acme", Payload: []byte(`{}`),
		ContentType: "application/json", SchemaID: "s", CorrelationID: "c-1", Headers: headers,
	}, {Type: "orders", Topic: "orders", ContentType: "application/json"}}
	if !reflect.DeepEqual(r.msgs, want) {
		t.Errorf("got  %+v\nwant %+v", r.msgs, want)
	}
	if r.ctx.Value(contextKey{}) == nil {
		t.Error("the transaction's context was not used")
	}
	if len(in.Metadata) != 5 {
		t.Errorf("the caller's metadata were changed: %v", in.Metadata)
	}
}

// TestRolledBackInMemory checks that an in-memory outbox, used with transactions of another
// database, sends nothing of a rolled-back transaction.
func TestRolledBackInMemory(t *testing.T) {
	store := memory.Open(memory.Config{})
	outbox := memory.Outbox[string](store)
	for _, commits := range []bool{false, true} {
		ctx, end := postrider.ForTransaction(t.Context())
		p := watermill.NewPublisher(ctx, outbox, "tx", watermill.PublisherConfig{})
		if err := p.Publish("orders", message.NewMessage("1", nil)); err != nil {
			t.Fatal(err)
		}
		end(commits)
	}
	if err := store.AddFeed(t.Context(), admin.By{Who: "test"}, "default", true); err != nil {
		t.Fatal(err)
	}
	found, err := store.Messages(t.Context(), "default", admin.Filter{}, 0, 10)
	if err != nil || len(found.Items) != 1 {
		t.Errorf("%d messages, %v: want the one that was committed", len(found.Items), err)
	}
}

// TestIDs checks that a text that is not a UUID always maps to the same ID, and different texts to
// different ones.
func TestIDs(t *testing.T) {
	r := &recorder{}
	p := watermill.NewPublisher(t.Context(), r, "tx", watermill.PublisherConfig{})
	for _, uuid := range []string{"01HZX3", "01HZX3", "01HZX4", ""} {
		if err := p.Publish("orders", message.NewMessage(uuid, nil)); err != nil {
			t.Fatal(err)
		}
	}
	first := r.msgs[0].ID
	if first.String() != "89609ed3-1bc0-8d0e-95ff-1936de0cd0e7" || r.msgs[1].ID != first || r.msgs[2].ID == first || !r.msgs[3].ID.IsZero() {
		t.Errorf("got %s, %s, %s, %s", first, r.msgs[1].ID, r.msgs[2].ID, r.msgs[3].ID)
	}
	if r.msgs[0].Headers[watermill.HeaderUUID] != "01HZX3" {
		t.Errorf("got %q", r.msgs[0].Headers)
	}
}

func TestPublishFails(t *testing.T) {
	r := &recorder{err: errors.New("deadlock")}
	p := watermill.NewPublisher(t.Context(), r, "tx", watermill.PublisherConfig{})
	if err := p.Publish("orders", message.NewMessage("1", nil)); !errors.Is(err, r.err) {
		t.Errorf("got %v", err)
	}
	if err := p.Publish("orders"); err != nil {
		t.Errorf("nothing to publish: got %v", err)
	}
}

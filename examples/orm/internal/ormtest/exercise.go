package ormtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/examples/orm"
)

// Refused is the item whose orders fail: see [Refusing].
const Refused = "bridle"

// Refusing returns an outbox that writes all messages and then returns [orm.ErrRefused] for those
// of the item [Refused]. The transaction must be rolled back with all its writes, including the
// message.
func Refusing[Tx any](o postrider.Outbox[Tx]) postrider.Outbox[Tx] { return refusing[Tx]{o} }

type refusing[Tx any] struct{ postrider.Outbox[Tx] }

func (r refusing[Tx]) Enqueue(ctx context.Context, tx Tx, msgs ...postrider.Message) error {
	if err := r.Outbox.Enqueue(ctx, tx, msgs...); err != nil {
		return err
	}
	if slices.ContainsFunc(msgs, func(m postrider.Message) bool { return bytes.Contains(m.Payload, []byte(Refused)) }) {
		return orm.ErrRefused
	}
	return nil
}

// Exercise places orders, one of which fails, and expects the others to exist with one message
// each. The shop that place belongs to must have an outbox that is [Refusing].
func Exercise(t *testing.T, db *Database, place func(ctx context.Context, item string) error) {
	t.Helper()
	for _, item := range []string{"saddle", Refused, "stirrup"} {
		err := place(t.Context(), item)
		if item == Refused && !errors.Is(err, orm.ErrRefused) || item != Refused && err != nil {
			t.Fatalf("%s: %v", item, err)
		}
	}
	db.Expect(t, "saddle", "stirrup")
}

// Expect compares the items of all orders, and of all messages that the store delivers, with the
// expected ones. Then it clears the table.
func (d *Database) Expect(t *testing.T, items ...string) {
	t.Helper()
	slices.Sort(items)
	written := d.orders(t)
	if got := slices.Sorted(maps.Values(written)); !slices.Equal(got, items) {
		t.Errorf("orders of %q, want %q", got, items)
	}
	var delivered []string
	for _, m := range d.messages(t) {
		var order struct{ ID, Item string }
		if err := json.Unmarshal(m.Payload, &order); err != nil {
			t.Errorf("payload %q: %v", m.Payload, err)
		}
		if m.Type != "order.placed" || m.OrderKey() != "order/"+order.ID || written[order.ID] != order.Item {
			t.Errorf("%s of %s says %s; the orders are %v", m.Type, m.OrderKey(), m.Payload, written)
		}
		if age := time.Since(m.OccurredAt); age.Abs() > time.Minute {
			t.Errorf("%s has occurred %v ago", m.OrderKey(), age)
		}
		delivered = append(delivered, order.Item)
	}
	if slices.Sort(delivered); !slices.Equal(delivered, items) {
		t.Errorf("messages of %q, want %q, each once", delivered, items)
	}
	must(d.DB.ExecContext(t.Context(), "DELETE FROM orders"))
}

func (d *Database) orders(t *testing.T) map[string]string {
	t.Helper()
	items := map[string]string{}
	rows := must(d.DB.QueryContext(t.Context(), "SELECT id, item FROM orders"))
	defer rows.Close()
	for rows.Next() {
		var id, item string
		if err := rows.Scan(&id, &item); err != nil {
			t.Fatal(err)
		}
		items[id] = item
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return items
}

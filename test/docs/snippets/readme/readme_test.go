package readme

import (
	"testing"

	"github.com/postrider/postrider/test/docs/scratch"
)

// TestReadme places an order like the first lines of README.md.
func TestReadme(t *testing.T) {
	pool, db := scratch.Open(t, "CREATE TABLE orders (id bigserial PRIMARY KEY, cents int)")
	if err := Write(t.Context(), pool, db.Outbox(), 700); err != nil {
		t.Fatal(err)
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM orders, postrider.messages WHERE cents = 700 AND type = 'order.placed'"); n != 1 {
		t.Errorf("%d orders with a message, want 1", n)
	}
}

package unitofwork

import (
	"testing"

	"github.com/postrider/postrider/test/docs/scratch"
)

// TestUnits places one order manually and one by a unit of work.
func TestUnits(t *testing.T) {
	pool, db := scratch.Open(t, "CREATE TABLE orders (id text PRIMARY KEY, placed bool)")
	transactor, outbox := db.Transactor(), db.Outbox()
	if err := Place(t.Context(), transactor, outbox, "42", nil); err != nil {
		t.Fatal(err)
	}
	if err := PlaceByUnit(t.Context(), transactor, outbox, "42"); err != nil {
		t.Fatal(err)
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM postrider.messages WHERE aggregate_id = '42'"); n != 2 {
		t.Errorf("%d messages", n)
	}
	if n := scratch.Count(t, pool, "SELECT count(*) FROM orders WHERE placed"); n != 1 {
		t.Errorf("%d orders", n)
	}
}

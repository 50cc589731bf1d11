package mysql_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/idempotency/idempotencytest"
	"github.com/postrider/postrider/store/storetest"
	"github.com/postrider/postrider/store/table/mysql"
)

func TestIdempotency(t *testing.T) {
	t.Parallel()
	db := newMariaDB(t)
	store := must(mysql.Open(db, mysql.Config{}))(t).IdempotencyKeys()
	idempotencytest.Run(t, func(t *testing.T) idempotencytest.Harness[*sql.Tx] {
		mustExec(t, db, "DELETE FROM postrider_idempotency")
		return idempotencytest.Harness[*sql.Tx]{
			Store: store,
			Begin: func(t *testing.T) (*sql.Tx, func() error, func() error) {
				tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback() })
				return tx, tx.Commit, tx.Rollback
			},
		}
	})
}

func TestIdempotencyAdmin(t *testing.T) {
	t.Parallel()
	own := must(mysql.Open(newMariaDB(t), mysql.Config{}))(t)
	storetest.RunKeys(t, own.IdempotencyKeys(), own.IdempotencyAdmin())
}

// A claim inside of a transaction that is given up leaves nothing that anybody would see, or that would stay.
func TestIdempotencyLeavesNothing(t *testing.T) {
	t.Parallel()
	db := newMariaDB(t)
	own := must(mysql.Open(db, mysql.Config{}))(t)
	store := own.IdempotencyKeys()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := idempotency.Claim{ID: idempotency.ID{Route: "POST /orders", Key: "k"}, Token: "1", Retention: time.Hour}
	if outcome, err := store.ClaimIn(t.Context(), tx, c); err != nil || outcome.State != idempotency.Claimed {
		t.Fatal(outcome, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if keys, err := own.IdempotencyAdmin().List(t.Context(), idempotency.Filter{}, nil, 10); err != nil || len(keys) != 0 {
		t.Errorf("%+v, %v", keys, err)
	}
	mustExec(t, db, "UPDATE postrider_idempotency SET expires = UTC_TIMESTAMP(6)") // as it is a minute later
	if n, err := store.Purge(t.Context()); err != nil || n != 0 {
		t.Errorf("%d keys were removed, %v; want 0: there was none", n, err)
	}
	if n := count(t, db, "SELECT count(*) FROM postrider_idempotency"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

package enttx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/postrider/postrider/adapter/enttx"
)

// connector begins transactions without a server. The package is tested with servers, messages and
// generated code in examples/orm/ent.
type connector struct{ refuses error }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c connector) Driver() driver.Driver                        { return nil }
func (c connector) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (c connector) Close() error                                 { return nil }
func (c connector) Begin() (driver.Tx, error)                    { return c, c.refuses }
func (c connector) Commit() error                                { return nil }
func (c connector) Rollback() error                              { return nil }

func open(t *testing.T, c connector) (*sql.DB, *entsql.Driver) {
	t.Helper()
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db, entsql.OpenDB(dialect.Postgres, db)
}

func TestBegin(t *testing.T) {
	db, plain := open(t, connector{})
	d := enttx.Driver(plain)
	for name, begin := range map[string]func(context.Context) (dialect.Tx, error){
		"Tx":      d.Tx,
		"wrapped": dialect.Debug(d, func(...any) {}).Tx,
		"BeginTx": func(ctx context.Context) (dialect.Tx, error) {
			return d.(interface {
				BeginTx(context.Context, *sql.TxOptions) (dialect.Tx, error)
			}).BeginTx(ctx, nil)
		},
	} {
		tx, sqlTx, err := enttx.Begin(t.Context(), begin)
		if err != nil || sqlTx == nil {
			t.Fatalf("%s: %v, %v", name, sqlTx, err)
		}
		if err := tx.Commit(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := sqlTx.Commit(); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("%s: the *sql.Tx is another one: %v", name, err)
		}
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d transactions were left open", n)
	}
}

// Concurrent transactions are not mixed up, and one without Begin is unaffected.
func TestBeginTwice(t *testing.T) {
	_, plain := open(t, connector{})
	d := enttx.Driver(plain)
	first, firstTx, err := enttx.Begin(t.Context(), d.Tx)
	if err != nil {
		t.Fatal(err)
	}
	second, secondTx, err := enttx.Begin(t.Context(), d.Tx)
	if err != nil {
		t.Fatal(err)
	}
	third, err := d.Tx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.Rollback(), third.Rollback()); err != nil {
		t.Error(err)
	}
	if err := secondTx.Commit(); !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
	if err := firstTx.Commit(); err != nil {
		t.Error(err)
	}
	if err := first.Commit(); !errors.Is(err, sql.ErrTxDone) {
		t.Error(err)
	}
}

func TestNoTransaction(t *testing.T) {
	db, plain := open(t, connector{})
	if tx, sqlTx, err := enttx.Begin(t.Context(), plain.Tx); tx != nil || sqlTx != nil || !errors.Is(err, enttx.ErrNoTransaction) {
		t.Errorf("%v, %v, %v", tx, sqlTx, err)
	}
	if n := db.Stats().InUse; n != 0 {
		t.Errorf("%d transactions were left open", n)
	}
}

func TestBeginFailed(t *testing.T) {
	refused := errors.New("no connection")
	_, plain := open(t, connector{refused})
	tx, sqlTx, err := enttx.Begin(t.Context(), enttx.Driver(plain).Tx)
	if tx != nil || sqlTx != nil || !errors.Is(err, refused) {
		t.Errorf("%v, %v, %v", tx, sqlTx, err)
	}
}

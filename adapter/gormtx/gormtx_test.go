package gormtx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"

	"github.com/postrider/postrider/adapter/gormtx"
)

// connector begins transactions without a server, because only the transaction's type matters here.
// It is tested with servers and messages in examples/orm/gorm.
type connector struct{ refuses error }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c connector) Driver() driver.Driver                        { return nil }
func (c connector) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (c connector) Close() error                                 { return nil }
func (c connector) Begin() (driver.Tx, error)                    { return c, c.refuses }
func (c connector) Commit() error                                { return nil }
func (c connector) Rollback() error                              { return nil }

func open(t *testing.T, c connector, cfg gorm.Config) *gorm.DB {
	t.Helper()
	pool := sql.OpenDB(c)
	t.Cleanup(func() { _ = pool.Close() })
	cfg.ConnPool = pool
	db, err := gorm.Open(tests.DummyDialector{}, &cfg)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestFrom(t *testing.T) {
	for name, cfg := range map[string]gorm.Config{"plain": {}, "prepared": {PrepareStmt: true}} {
		t.Run(name, func(t *testing.T) {
			db := open(t, connector{}, cfg)
			err := db.Transaction(func(tx *gorm.DB) error {
				want, err := gormtx.From(tx)
				if err != nil || want == nil {
					t.Fatalf("%v, %v", want, err)
				}
				for session, s := range map[string]*gorm.DB{
					"where":          tx.Where("id = 1"),
					"new":            tx.Session(&gorm.Session{NewDB: true}),
					"prepared":       tx.Session(&gorm.Session{PrepareStmt: true}),
					"prepared twice": tx.Session(&gorm.Session{PrepareStmt: true}).Session(&gorm.Session{PrepareStmt: true}),
				} {
					if got, err := gormtx.From(s); err != nil || got != want {
						t.Errorf("%s: %p, %v; want %p", session, got, err, want)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoTransaction(t *testing.T) {
	plain, prepared := open(t, connector{}, gorm.Config{}), open(t, connector{}, gorm.Config{PrepareStmt: true})
	for name, db := range map[string]*gorm.DB{
		"nil": nil, "zero": {}, "plain": plain, "prepared": prepared, "session": plain.Session(&gorm.Session{PrepareStmt: true}),
	} {
		if tx, err := gormtx.From(db); tx != nil || !errors.Is(err, gormtx.ErrNoTransaction) {
			t.Errorf("%s: %v, %v", name, tx, err)
		}
	}
	// A single connection is not a transaction.
	err := plain.Connection(func(db *gorm.DB) error {
		_, err := gormtx.From(db)
		return err
	})
	if !errors.Is(err, gormtx.ErrNoTransaction) {
		t.Error(err)
	}
}

// After a failed Begin, the *gorm.DB holds a transaction that is a nil pointer.
func TestBeginFailed(t *testing.T) {
	refused := errors.New("no connection")
	for name, cfg := range map[string]gorm.Config{"plain": {}, "prepared": {PrepareStmt: true}} {
		db := open(t, connector{refused}, cfg).Begin()
		if tx, err := gormtx.From(db); tx != nil || !errors.Is(err, refused) {
			t.Errorf("%s: %v, %v", name, tx, err)
		}
		db.Error = nil
		if tx, err := gormtx.From(db); tx != nil || !errors.Is(err, gormtx.ErrNoTransaction) {
			t.Errorf("%s, ignored: %v, %v", name, tx, err)
		}
	}
}

// stranger is a transaction wrapped by a plugin.
type stranger struct{ gorm.Tx }

func TestUnknownTransaction(t *testing.T) {
	db := open(t, connector{}, gorm.Config{})
	db = db.Session(&gorm.Session{NewDB: true, Context: t.Context()})
	db.Statement.ConnPool = stranger{}
	if tx, err := gormtx.From(db); tx != nil || err == nil || errors.Is(err, gormtx.ErrNoTransaction) {
		t.Errorf("%v, %v", tx, err)
	}
}

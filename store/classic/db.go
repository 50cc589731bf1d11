package classic

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/feeds"
)

// DB is Postrider's part of a MySQL or MariaDB database. It is safe for concurrent use, and so is everything that it returns.
type DB struct{ tables }

// TableDB is the table of an application that has its own outbox already, in MySQL, MariaDB or PostgreSQL. It is safe for
// concurrent use, and so is everything that it returns.
type TableDB struct{ tables }

// Open returns a handle on a MySQL or MariaDB database with Postrider's own tables. Config.Layout is not used. It sends nothing to
// the server.
func Open(db *sql.DB, cfg Config) (*DB, error) {
	var errs []error
	if cfg.Dialect == PostgreSQL {
		errs = append(errs, errors.New("classic: this is for MySQL and MariaDB; on PostgreSQL use package store/postgres"))
	}
	cfg.Dialect = MySQL
	if cfg.Layout.Table != "" && !cfg.Layout.native {
		errs = append(errs, fmt.Errorf("classic: table %s is the application's: open it with OpenTable", cfg.Layout.Table))
	}
	t, err := open(db, cfg)
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return &DB{t}, nil
}

// OpenTable returns a handle on the table of cfg.Layout, which may be the application's own or, with [Native], Postrider's. It sends
// nothing to the server.
func OpenTable(db *sql.DB, cfg Config) (*TableDB, error) {
	t, err := open(db, cfg)
	if err != nil {
		return nil, err
	}
	return &TableDB{t}, nil
}

func open(db *sql.DB, cfg Config) (tables, error) {
	cfg, err := cfg.withDefaults()
	if db == nil {
		err = errors.Join(errors.New("classic: db is nil"), err)
	}
	return tables{db, cfg}, err
}

// tables are what both have.
type tables struct {
	db  *sql.DB
	cfg Config
}

// Feeds is what a relay reads. Nothing is looked at before a feed is opened.
func (t *tables) Feeds() feeds.Store { return &feedStore{db: t.db, cfg: t.cfg} }

// Admin is what operators ask for and do.
func (t *tables) Admin() *Admin {
	d := &Admin{db: t.db, cfg: t.cfg}
	if t.cfg.Dialect == MySQL {
		d.inbox = &inboxDeadLetters{t.db, t.cfg}
	}
	return d
}

// Migrator creates and upgrades Postrider's tables.
func (t *tables) Migrator() *Migrator { return &Migrator{t.db, t.cfg} }

// Outbox writes messages in the transactions of producers. It fails for a table of the application, which writes its own rows.
func (db *TableDB) Outbox() (postrider.Outbox[*sql.Tx], error) {
	if !db.cfg.Layout.native {
		return nil, fmt.Errorf("classic: table %s was adopted: the application writes into it as it always has", db.cfg.Layout.Table)
	}
	return &outbox{db.cfg}, nil
}

// Outbox writes messages in the transactions of producers.
func (db *DB) Outbox() postrider.Outbox[*sql.Tx] { return &outbox{db.cfg} }

// Transactor runs functions in transactions, as [Config.Transactor] says. Each transaction writes a mark into a table of
// Postrider's: if its COMMIT is not answered, another connection waits for the end of the transaction and looks. The table has a row
// for each transaction that a program has open at the same time, and stays that small.
func (db *DB) Transactor() postrider.Transactor[*sql.Tx] {
	t := &runner{cfg: db.cfg, db: db.db}
	if !db.cfg.Transactor.LeaveUncertain {
		t.marks = newMarks(db.db, db.cfg)
	}
	return t
}

// Inbox is where consumers remember which messages they have handled.
func (db *DB) Inbox() inbox.Store[*sql.Tx] {
	return &inboxStore{db: db.db, cfg: db.cfg, terms: make(map[string]inboxTerms)}
}

// Sagas is where runners keep sagas.
func (db *DB) Sagas() saga.Store[*sql.Tx] { return &sagaStore{db.db, db.cfg} }

// SagaAdmin is what operators ask for and do about sagas.
func (db *DB) SagaAdmin() saga.Admin { return &sagaStore{db.db, db.cfg} }

// IdempotencyKeys is where HTTP handlers keep the keys of requests, and the answers to them.
func (db *DB) IdempotencyKeys() idempotency.Store[*sql.Tx] { return &keyStore{db.db, db.cfg} }

// IdempotencyAdmin is what operators ask for about idempotency keys.
func (db *DB) IdempotencyAdmin() idempotency.Admin { return &keyStore{db.db, db.cfg} }

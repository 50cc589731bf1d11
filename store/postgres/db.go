package postgres

import (
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/feeds"
)

// DB is a handle on Postrider's schema in a PostgreSQL database, for programs that use pgx. It is
// safe for concurrent use, and so is everything that it returns.
type DB struct {
	parts[pgx.Tx]
	pool *pgxpool.Pool
}

// SQLDB is a handle on Postrider's schema in a PostgreSQL database, for programs that use
// database/sql with any driver. Relays and the admin API need a [DB].
type SQLDB struct{ parts[*sql.Tx] }

// Open returns a handle on the database behind pool, which must connect to a primary server. It
// sends nothing to the server.
func Open(pool *pgxpool.Pool, cfg Config) (*DB, error) {
	cfg, err := cfg.withDefaults()
	if pool == nil {
		err = errors.Join(errors.New("postgres: pool is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	return &DB{parts[pgx.Tx]{overPgx(pool), cfg}, pool}, nil
}

// OpenSQL returns a handle on the database behind db. It sends nothing to the server.
func OpenSQL(db *sql.DB, cfg Config) (*SQLDB, error) {
	cfg, err := cfg.withDefaults()
	if db == nil {
		err = errors.Join(errors.New("postgres: db is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	return &SQLDB{parts[*sql.Tx]{overSQL(db), cfg}}, nil
}

// Outbox returns the outbox, with which producers write messages in their own transactions.
func (db *DB) Outbox() *Outbox { return &Outbox{newEnqueuer(db.cfg)} }

// Outbox returns the outbox, with which producers write messages in their own transactions.
func (db *SQLDB) Outbox() postrider.Outbox[*sql.Tx] { return &sqlOutbox{newEnqueuer(db.cfg)} }

// Feeds returns the store that a relay reads. A relay keeps at most four connections of the pool
// busy.
func (db *DB) Feeds() feeds.Store {
	return &feedStore{pool: newCommitted(db.pool), cfg: db.cfg, freezer: freezer{tried: map[string]time.Time{}}}
}

// Admin returns the admin API. It needs a user with the operator role, or the schema's owner.
func (db *DB) Admin() *Admin { return &Admin{db.pool, db.cfg} }

// SagaAdmin returns the admin API for sagas.
func (db *DB) SagaAdmin() saga.Admin { return &sagaStore[pgx.Tx]{db.db, db.cfg} }

// IdempotencyAdmin returns the admin API for idempotency keys.
func (db *DB) IdempotencyAdmin() idempotency.Admin { return &keyAdmin{db.pool, db.cfg} }

// SentLog returns the log as one feed has delivered it, for reconciliation. Resends are recorded in
// the audit log under the name who.
func (db *DB) SentLog(feed, who string) reconcile.Log { return &sentLog{db.Admin(), feed, who} }

// Migrator returns a migrator, which creates and upgrades the schema. Only the first migration uses
// the layout.
func (db *DB) Migrator(layout Layout) (*Migrator, error) {
	script, err := NewScript(db.cfg, layout)
	if err != nil {
		return nil, err
	}
	return &Migrator{db.pool, script}, nil
}

// parts are the methods that DB and SQLDB have in common.
type parts[Tx any] struct {
	db  database[Tx]
	cfg Config
}

// Transactor returns a transactor, which runs functions in transactions as [Config.Transactor]
// says. It asks for the transaction's ID before each COMMIT. If the COMMIT is not answered, it
// finds out on another connection whether the transaction was committed. To prove that the server
// did not crash in between, it reads the schema. Without the right to read the schema, it needs
// another connection of the same user that was open before the COMMIT, such as one of a pool.
func (p *parts[Tx]) Transactor() postrider.Transactor[Tx] { return &runner[Tx]{cfg: p.cfg, db: p.db} }

// Inbox returns the store in which consumers record the messages that they have handled.
func (p *parts[Tx]) Inbox() inbox.Store[Tx] {
	return &inboxStore[Tx]{db: p.db, cfg: p.cfg, inserts: newInserts(p.cfg), terms: make(map[string]terms)}
}

// Sagas returns the store in which runners keep sagas. It needs a user with the consumer role, or
// the schema's owner.
func (p *parts[Tx]) Sagas() saga.Store[Tx] { return &sagaStore[Tx]{p.db, p.cfg} }

// IdempotencyKeys returns the store in which HTTP handlers keep the keys of requests and the
// answers to them.
func (p *parts[Tx]) IdempotencyKeys() idempotency.Store[Tx] {
	return &keyStore[Tx]{db: p.db, cfg: p.cfg}
}

// Reconciliations returns the store in which reconcilers keep their jobs.
func (p *parts[Tx]) Reconciliations() reconcile.Store[Tx] { return &reconcilers[Tx]{p.db, p.cfg} }

// Receipts returns what consumers have received, for reconciliation.
func (p *parts[Tx]) Receipts() reconcile.Receipts { return receipts{p.db, p.cfg} }

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

// DB is Postrider's part of a PostgreSQL database, for programs that use pgx. It is safe for concurrent use, and so is
// everything that it returns.
type DB struct {
	parts[pgx.Tx]
	pool *pgxpool.Pool
}

// SQLDB is Postrider's part of a PostgreSQL database, for programs that use database/sql with any driver. Relays and operators
// need a [DB].
type SQLDB struct{ parts[*sql.Tx] }

// Open returns a handle on the database behind pool, which connects to a primary server. It sends nothing to the server.
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

// Outbox writes messages in the transactions of producers.
func (db *DB) Outbox() *Outbox { return &Outbox{newEnqueuer(db.cfg)} }

// Outbox writes messages in the transactions of producers.
func (db *SQLDB) Outbox() postrider.Outbox[*sql.Tx] { return &sqlOutbox{newEnqueuer(db.cfg)} }

// Feeds is what a relay reads. A relay keeps at most four connections of the pool busy.
func (db *DB) Feeds() feeds.Store {
	return &feedStore{pool: newCommitted(db.pool), cfg: db.cfg, freezer: freezer{tried: map[string]time.Time{}}}
}

// Admin is what operators ask for and do. It needs a user with the operator role, or the schema's owner.
func (db *DB) Admin() *Admin { return &Admin{db.pool, db.cfg} }

// SagaAdmin is what operators ask for and do about sagas.
func (db *DB) SagaAdmin() saga.Admin { return &sagaStore[pgx.Tx]{db.db, db.cfg} }

// IdempotencyAdmin is what operators ask for about idempotency keys.
func (db *DB) IdempotencyAdmin() idempotency.Admin { return &keyAdmin{db.pool, db.cfg} }

// SentLog is what a feed has delivered, for reconciliation. What is sent again is recorded as done by who.
func (db *DB) SentLog(feed, who string) reconcile.Log { return &sentLog{db.Admin(), feed, who} }

// Migrator creates and upgrades the schema. Only the first migration uses the layout.
func (db *DB) Migrator(layout Layout) (*Migrator, error) {
	script, err := NewScript(db.cfg, layout)
	if err != nil {
		return nil, err
	}
	return &Migrator{db.pool, script}, nil
}

// parts are the same over both drivers.
type parts[Tx any] struct {
	db  database[Tx]
	cfg Config
}

// Transactor runs functions in transactions, as [Config.Transactor] says. It asks for the transaction's ID before each COMMIT:
// if the COMMIT is not answered, it finds out on another connection what became of it. To prove that the server did not crash
// meanwhile it reads the schema; without the right to, it needs another connection of the same user that was open before the
// COMMIT, such as one of a pool.
func (p *parts[Tx]) Transactor() postrider.Transactor[Tx] { return &runner[Tx]{cfg: p.cfg, db: p.db} }

// Inbox is where consumers remember which messages they have handled.
func (p *parts[Tx]) Inbox() inbox.Store[Tx] {
	return &inboxStore[Tx]{db: p.db, cfg: p.cfg, inserts: newInserts(p.cfg), terms: make(map[string]terms)}
}

// Sagas is where runners keep sagas. It needs a user with the consumer role, or the schema's owner.
func (p *parts[Tx]) Sagas() saga.Store[Tx] { return &sagaStore[Tx]{p.db, p.cfg} }

// IdempotencyKeys is where HTTP handlers keep the keys of requests, and the answers to them.
func (p *parts[Tx]) IdempotencyKeys() idempotency.Store[Tx] {
	return &keyStore[Tx]{db: p.db, cfg: p.cfg}
}

// Reconciliations is where reconciliation keeps its jobs.
func (p *parts[Tx]) Reconciliations() reconcile.Store[Tx] { return &reconcilers[Tx]{p.db, p.cfg} }

// Receipts is what consumers have received, for reconciliation.
func (p *parts[Tx]) Receipts() reconcile.Receipts { return receipts{p.db, p.cfg} }

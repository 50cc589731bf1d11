package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/internal/sqltext"
	"github.com/postrider/postrider/store/transactor"
)

// Config is where Postrider's tables are, and how they are used.
type Config struct {
	// Schema is the database that holds Postrider's tables. Defaults to the connection's own.
	Schema string
	// Prefix begins the names of these tables. Defaults to "postrider_".
	Prefix string
	// Only is the feed's filter: other messages are left alone, as if they were not there. Feeds of one database have filters that
	// exclude each other. Defaults to all.
	Only route.Match
	// Retention is for how long delivered messages are kept. Defaults to 7 days. Negative means for ever.
	Retention time.Duration
	// PurgeChunk is how many rows one statement of the housekeeping deletes. Defaults to 1000.
	PurgeChunk int
	// DedupWindow is for how long a dedup key stays unique. Defaults to 7 days.
	DedupWindow time.Duration
	// InboxWindow is for how long a consumer remembers, at least, which messages it has received. It is fixed when a consumer is
	// first opened. Defaults to 7 days.
	InboxWindow time.Duration
	// Transactor is how [DB.Transactor] runs functions. LeaveUncertain saves two round trips here, and nobody notices then that a
	// function has kept a deadlock to itself.
	Transactor transactor.Config
	// CommandFlags are what the commands that errors name carry, so that they act on these tables and on no others, such as
	// "--database orders". Defaults to none.
	CommandFlags string
}

// DB is Postrider's part of a MySQL or MariaDB database. It is safe for concurrent use, and so is everything that it returns.
type DB struct {
	db    *sql.DB
	cfg   Config
	table *table.DB
}

// Open returns a handle on a MySQL or MariaDB database with Postrider's own tables. It sends nothing to the server.
func Open(db *sql.DB, cfg Config) (*DB, error) {
	const week = 7 * 24 * time.Hour
	var errs []error
	if cfg.Prefix == "" {
		cfg.Prefix = "postrider_"
	}
	if cfg.PurgeChunk == 0 {
		cfg.PurgeChunk = 1000
	}
	if cfg.InboxWindow == 0 {
		cfg.InboxWindow = week
	}
	if cfg.InboxWindow < time.Second {
		errs = append(errs, fmt.Errorf("mysql: InboxWindow is %v: want at least 1 s", cfg.InboxWindow))
	}
	var err error
	if cfg.Transactor, err = cfg.Transactor.WithDefaults(); err != nil {
		errs = append(errs, fmt.Errorf("mysql: %w", err))
	}
	messages := table.Config{
		Dialect: sqltext.MySQL, Schema: cfg.Schema, Prefix: cfg.Prefix, Only: cfg.Only, Retention: cfg.Retention, PurgeChunk: cfg.PurgeChunk,
		DedupWindow: cfg.DedupWindow, CommandFlags: cfg.CommandFlags,
	}
	if db == nil {
		errs = append(errs, errors.New("mysql: db is nil"))
	}
	if err := errors.Join(append(errs, messages.Validate())...); err != nil {
		return nil, err
	}
	t, err := table.Open(db, messages)
	if err != nil {
		return nil, err
	}
	return &DB{db, cfg, t}, nil
}

// own is where Postrider's tables are.
func (c *Config) own() sqltext.Tables {
	return sqltext.Tables{Dialect: sqltext.MySQL, Schema: c.Schema, Prefix: c.Prefix}
}

// stmt begins a statement.
func (c *Config) stmt(parts ...string) *sqltext.Stmt { return c.own().Stmt(parts...) }

// Feeds is what a relay reads. Nothing is looked at before a feed is opened.
func (db *DB) Feeds() feeds.Store { return db.table.Feeds() }

// Admin is what operators ask for and do.
func (db *DB) Admin() *table.Admin { return db.table.Admin() }

// Migrator creates and upgrades Postrider's tables.
func (db *DB) Migrator() *table.Migrator { return db.table.Migrator() }

// Outbox writes messages in the transactions of producers.
func (db *DB) Outbox() postrider.Outbox[*sql.Tx] {
	outbox, err := db.table.Outbox()
	if err != nil {
		panic(err) // the table is our own
	}
	return outbox
}

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

package table

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// DB is a table of messages in MySQL, MariaDB or PostgreSQL, with Postrider's tables that say who carries what. It is safe for
// concurrent use, and so is everything that it returns.
type DB struct {
	db  *sql.DB
	cfg Config
}

// Open returns a handle on the table of cfg.Layout, which may be the application's own or, with [Native], Postrider's. It sends
// nothing to the server.
func Open(db *sql.DB, cfg Config) (*DB, error) {
	cfg, err := cfg.withDefaults()
	if db == nil {
		err = errors.Join(errors.New("table: db is nil"), err)
	}
	if err != nil {
		return nil, err
	}
	return &DB{db, cfg}, nil
}

// Feeds is what a relay reads. Nothing is looked at before a feed is opened.
func (t *DB) Feeds() feeds.Store { return &feedStore{db: t.db, cfg: t.cfg} }

// Admin is what operators ask for and do.
func (t *DB) Admin() *Admin {
	d := &Admin{db: t.db, cfg: t.cfg}
	if t.cfg.Dialect == sqltext.MySQL {
		d.inbox = deadletters.New(t.db, t.cfg.own())
	}
	return d
}

// Migrator creates and upgrades Postrider's tables.
func (t *DB) Migrator() *Migrator { return &Migrator{t.db, t.cfg} }

// Outbox writes messages in the transactions of producers. It fails for a table of the application, which writes its own rows.
func (t *DB) Outbox() (postrider.Outbox[*sql.Tx], error) {
	if !t.cfg.Layout.native {
		return nil, fmt.Errorf("table: table %s was adopted: the application writes into it as it always has", t.cfg.Layout.Table)
	}
	return &outbox{t.cfg}, nil
}

package tolog

import (
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/table"
)

// Config is what is moved, and where to.
type Config struct {
	// Classic is the table as its relays know it. Required.
	Classic table.Config
	// Log is where the log is, in the same database.
	Log postgres.Config
	// Feed is the feed of the log that takes over. One that does not exist is created. Defaults to "default".
	Feed string
	// LockTimeout is how long the trigger's creation waits for transactions that have written to the table, and how long new ones
	// wait behind it. Then it lets them pass, and tries again. Less than the server's deadlock_timeout does not get past an autovacuum
	// of the table. Defaults to 2 s.
	LockTimeout time.Duration
	// LeaveBlocked lets the feed go on although rows wait behind a dead letter of their key: their order is given up.
	LeaveBlocked bool
	// Quiet is for how long nothing must have been written to the table before the trigger is removed. Defaults to 1 h.
	Quiet time.Duration
}

// Move is a move of one table. It keeps no state of its own: a later call finds it in the database.
type Move struct {
	pool *pgxpool.Pool
	cfg  Config
}

// New returns a move. The pool connects as the owner of the table and of the log, with the search path of the relays of the table.
func New(pool *pgxpool.Pool, cfg Config) (*Move, error) {
	if cfg.Log.Schema == "" {
		cfg.Log.Schema = "postrider"
	}
	if cfg.Feed == "" {
		cfg.Feed = "default"
	}
	if cfg.LockTimeout == 0 {
		cfg.LockTimeout = 2 * time.Second
	}
	if cfg.Quiet == 0 {
		cfg.Quiet = time.Hour
	}
	if cfg.Classic.Prefix == "" {
		cfg.Classic.Prefix = "postrider_"
	}
	if cfg.Classic.Layout.Table == "" {
		cfg.Classic.Layout = table.Native(cfg.Classic.Prefix)
	}
	var errs []error
	if pool == nil {
		errs = append(errs, errors.New("tolog: pool is nil"))
	}
	if cfg.Classic.Dialect != table.PostgreSQL {
		errs = append(errs, errors.New("tolog: the log needs PostgreSQL, and the table is on another server"))
	}
	if cfg.LockTimeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("tolog: LockTimeout is %v: want at least 1ms", cfg.LockTimeout))
	}
	errs = append(errs, cfg.Classic.Layout.Validate())
	return &Move{pool, cfg}, errors.Join(errs...)
}

// own is the full name of one of the classic engine's tables.
func (m *Move) own(name string) string {
	if m.cfg.Classic.Schema == "" {
		return quote(m.cfg.Classic.Prefix + name)
	}
	return quote(m.cfg.Classic.Schema, m.cfg.Classic.Prefix+name)
}

func quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

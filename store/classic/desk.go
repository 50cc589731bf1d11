package classic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// Desk is the operator's side of the engine: of the one feed that its table serves, and of the consumers that have an inbox in the
// same database. It is safe for concurrent use.
type Desk struct {
	db    *sql.DB
	cfg   Config
	inbox *InboxLetters // nil where there are no inboxes

	mu    sync.Mutex
	bound *table // once it is known
}

var (
	_ desk.Letters = (*Desk)(nil)
	_ desk.Feeds   = (*Desk)(nil)
	_ desk.Records = (*Desk)(nil)
	_ desk.Log     = (*Desk)(nil)
	_ desk.Gauges  = (*Desk)(nil)
)

// NewDesk returns a desk for the table of a configuration.
func NewDesk(db *sql.DB, cfg Config) (*Desk, error) {
	if db == nil {
		return nil, errors.New("classic: db is nil")
	}
	cfg, err := cfg.withDefaults()
	d := &Desk{db: db, cfg: cfg}
	if cfg.Dialect == MySQL {
		d.inbox = &InboxLetters{db, cfg}
	}
	return d, err
}

// served is the feed that the table serves. Without a name, there is none yet.
type served struct {
	t                *table
	name             string
	paused           bool
	created, settled time.Time
	destination      string
}

// served looks up the feed.
func (d *Desk) served(ctx context.Context, q querier) (*served, error) {
	t, err := d.table(ctx, d.cfg.Shards)
	if err != nil {
		return nil, err
	}
	f := &served{t: t}
	var shards int
	var created, settled sql.NullInt64
	micros := d.cfg.Dialect.micros
	err = d.cfg.stmt("SELECT feed, shards, paused, ", micros("created_at"), ", ", micros("settled_at"), ", coalesce(destination, '') FROM {feeds} WHERE table_name = ").
		text(t.label).row(ctx, q).Scan(&f.name, &shards, &f.paused, &created, &settled, &f.destination)
	if errors.Is(err, sql.ErrNoRows) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	f.created, f.settled = moment(created), moment(settled)
	f.t, err = d.table(ctx, shards)
	return f, err
}

// named returns the feed, which must have a name.
func (d *Desk) named(ctx context.Context, q querier, name string) (*served, error) {
	f, err := d.served(ctx, q)
	if err == nil && (name == "" || f.name != name) {
		err = fmt.Errorf("feed %s: %w", name, desk.ErrNoFeed)
	}
	return f, err
}

// table returns what is known of the table, as it is divided into shards.
func (d *Desk) table(ctx context.Context, shards int) (*table, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bound == nil || d.bound.shards != shards {
		t, err := bind(ctx, d.db, &d.cfg, shards)
		if err != nil {
			return nil, err
		}
		d.bound = t
	}
	return d.bound, nil
}

// look runs f in a transaction that changes nothing, and whose statements all see the same.
func (d *Desk) look(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // there is nothing to undo
	return f(tx)
}

// change runs f in a transaction of its own, when nobody who holds a shard of the messages is at work in one: whoever changes what is
// set aside has locked the leases.
func (d *Desk) change(ctx context.Context, feed string, letters []letter, f func(tx *sql.Tx) error) error {
	var shards []int
	for i := range letters {
		if !slices.Contains(shards, letters[i].Shard) {
			shards = append(shards, letters[i].Shard)
		}
	}
	return transact(ctx, d.db, func(tx *sql.Tx) error {
		if err := d.lockLeases(ctx, tx, feed, shards); err != nil {
			return err
		}
		return f(tx)
	})
}

// lockLeases locks the leases of shards until the transaction ends.
func (d *Desk) lockLeases(ctx context.Context, tx *sql.Tx, feed string, shards []int) error {
	return d.cfg.eachLease(ctx, tx, feed, shards, func(int, int64, string) {})
}

// shards are all of the feed.
func (f *served) shards() []int {
	all := make([]int, f.t.shards)
	for i := range all {
		all[i] = i
	}
	return all
}

// failed says what could not be done. Where our tables are missing, that is the reason.
func (d *Desk) failed(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case isMissingTable(err):
		return fmt.Errorf("classic: %s: %w: %w", what, postrider.ErrSchema, err)
	}
	return fmt.Errorf("classic: %s: %w", what, err)
}

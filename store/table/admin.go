package table

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/deadletters"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Admin is the operator's side of the engine: of the feeds that its table serves, and of the consumers that have an inbox in the same
// database. It is safe for concurrent use.
type Admin struct {
	db    *sql.DB
	cfg   Config
	inbox *deadletters.DeadLetters // nil where there are no inboxes

	mu    sync.Mutex
	bound *table // once it is known
}

var (
	_ admin.DeadLetters = (*Admin)(nil)
	_ admin.Feeds       = (*Admin)(nil)
	_ admin.Records     = (*Admin)(nil)
	_ admin.Log         = (*Admin)(nil)
	_ admin.Gauges      = (*Admin)(nil)
)

// served is a feed that the table serves. Without a name, there is none yet.
type served struct {
	t                *table
	name             string
	only             route.Match
	paused           bool
	created, settled time.Time
	destination      string
}

// feeds looks up the table's feeds, by name. Where there are none yet, it returns one without a name.
func (d *Admin) feeds(ctx context.Context, q sqltext.Querier) ([]*served, error) {
	t, err := d.table(ctx, d.cfg.Shards)
	if err != nil {
		return nil, err
	}
	var all []*served
	shards := make(map[string]int)
	micros := d.cfg.Dialect.Micros
	err = d.cfg.stmt("SELECT feed, shards, paused, ", micros("created_at"), ", ", micros("settled_at"), `, coalesce(destination, ''),
		coalesce(filter, '') FROM {feeds} WHERE table_name = `).Text(t.label).Each(ctx, q, func(scan func(...any) error) error {
		f := &served{}
		var n int
		var created, settled sql.NullInt64
		var filter string
		err := scan(&f.name, &n, &f.paused, &created, &settled, &f.destination, &filter)
		if err == nil {
			f.only, err = parseFilter(filter)
		}
		f.created, f.settled = sqltext.Moment(created), sqltext.Moment(settled)
		all, shards[f.name] = append(all, f), n
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b *served) int { return strings.Compare(a.name, b.name) }) // which depends on no collation
	for _, f := range all {
		if f.t, err = d.table(ctx, shards[f.name]); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		all = []*served{{t: t}}
	}
	return all, nil
}

// named returns the feed with a name.
func (d *Admin) named(ctx context.Context, q sqltext.Querier, name string) (*served, error) {
	all, err := d.feeds(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if name != "" && f.name == name {
			return f, nil
		}
	}
	return nil, &feeds.NoFeedError{Feed: name}
}

// table returns what is known of the table, as it is divided into shards.
func (d *Admin) table(ctx context.Context, shards int) (*table, error) {
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
func (d *Admin) look(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // there is nothing to undo
	return f(tx)
}

// change runs f in a transaction of its own, when nobody who holds a shard of the messages is at work in one: a caller that changes what is
// deferred has locked the leases.
func (d *Admin) change(ctx context.Context, feed string, deadLetters []deadLetter, f func(tx *sql.Tx) error) error {
	var shards []int
	for i := range deadLetters {
		if !slices.Contains(shards, deadLetters[i].Shard) {
			shards = append(shards, deadLetters[i].Shard)
		}
	}
	return sqltext.Transact(ctx, d.db, func(tx *sql.Tx) error {
		if err := d.lockLeases(ctx, tx, feed, shards); err != nil {
			return err
		}
		return f(tx)
	})
}

// lockLeases locks the leases of shards until the transaction ends.
func (d *Admin) lockLeases(ctx context.Context, tx *sql.Tx, feed string, shards []int) error {
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
func (d *Admin) failed(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case sqltext.IsMissingTable(err):
		return fmt.Errorf("table: %s: %w: %w", what, feeds.ErrSchema, err)
	}
	return fmt.Errorf("table: %s: %w", what, err)
}

package classic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/postrider/postrider"
)

var (
	_ postrider.Store      = (*Store)(nil)
	_ postrider.Maintainer = (*Store)(nil)
	_ postrider.Canary     = (*Store)(nil)
)

// Store is the relay's side of a table of messages. It is safe for concurrent use.
type Store struct {
	db  *sql.DB
	cfg Config
}

// New returns a store. Nothing is looked at before a feed is opened.
func New(db *sql.DB, cfg Config) (*Store, error) {
	if db == nil {
		return nil, errors.New("classic: db is nil")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Store{db: db, cfg: cfg}, nil
}

// Open implements [postrider.Store]. A table serves one feed, because what has become of a message stands in its row: a second
// name is refused.
func (s *Store) Open(ctx context.Context, name string, member postrider.Member) (postrider.Feed, error) {
	if member.Lease <= 0 {
		return nil, fmt.Errorf("classic: a lease of %v would never be held", member.Lease)
	}
	if err := checkVersion(ctx, s.db, s.cfg); err != nil {
		return nil, err
	}
	t, err := bind(ctx, s.db, &s.cfg, s.cfg.Shards)
	if err != nil {
		return nil, err
	}
	shards, err := s.register(ctx, t, name)
	if err != nil {
		return nil, fmt.Errorf("classic: open feed %q: %w", name, err)
	}
	if shards != t.shards { // they were fixed when the feed was first opened
		if t, err = bind(ctx, s.db, &s.cfg, shards); err != nil {
			return nil, err
		}
	}
	return &feed{store: s, t: t, name: name, member: member, id: postrider.NewID().String(), lanes: make(map[int]*lane)}, nil
}

// register makes the feed's entry and its leases, unless there are some, and returns how many shards it has.
func (s *Store) register(ctx context.Context, t *table, name string) (shards int, err error) {
	err = s.do(ctx, func(tx *sql.Tx) error {
		shards, err = s.enrol(ctx, tx, t, name)
		return err
	})
	return shards, err
}

// enrol is register in a transaction that there is already.
func (s *Store) enrol(ctx context.Context, tx *sql.Tx, t *table, name string) (shards int, err error) {
	if shards, err = s.registered(ctx, tx, t, name); err != nil || shards > 0 {
		return shards, err
	}
	insert, otherwise := "INSERT INTO ", " ON CONFLICT DO NOTHING"
	if s.cfg.Dialect == MySQL {
		insert, otherwise = "INSERT IGNORE INTO ", ""
	}
	_, err = s.cfg.stmt(insert, "{feeds} (feed, table_name, shards, created_at) VALUES (").word(name).sql(", ").text(t.label).sql(", ").
		number(int64(t.shards)).sql(", {now})", otherwise).exec(ctx, tx)
	if err != nil {
		return 0, err
	}
	if shards, err = s.registered(ctx, tx, t, name); err != nil {
		return 0, err
	}
	leases := s.cfg.stmt(insert, "{leases} (feed, shard) VALUES ")
	for i := range shards {
		if i > 0 {
			leases.sql(", ")
		}
		leases.sql("(").word(name).sql(", ", strconv.Itoa(i), ")")
	}
	_, err = leases.sql(otherwise).exec(ctx, tx)
	return shards, err
}

// registered returns how many shards the feed has, 0 if there is no such feed, and an error if the table is another's.
func (s *Store) registered(ctx context.Context, q querier, t *table, name string) (shards int, err error) {
	err = s.cfg.stmt("SELECT feed, table_name, shards FROM {feeds} WHERE feed = ").word(name).sql(" OR table_name = ").text(t.label).
		each(ctx, q, func(scan func(...any) error) error {
			var feed, table string
			var n int
			if err := scan(&feed, &table, &n); err != nil {
				return err
			}
			switch {
			case feed != name:
				return fmt.Errorf("table %s is served by feed %q, and a table serves one feed only: remove that one, or use its name", table, feed)
			case table != t.label:
				return fmt.Errorf("the feed serves table %s, not %s: give this one another name", table, t.label)
			}
			shards = n
			return nil
		})
	return shards, err
}

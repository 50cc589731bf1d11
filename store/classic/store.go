package classic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
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
	if member.From != (postrider.Origin{}) {
		return nil, fmt.Errorf("classic: open feed %q: %w: a table's feed begins with all that waits there", name, postrider.ErrUnsupported)
	}
	shards, err := s.register(ctx, t, name, member)
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
func (s *Store) register(ctx context.Context, t *table, name string, member postrider.Member) (shards int, err error) {
	err = s.do(ctx, func(tx *sql.Tx) error {
		by := desk.By{Who: member.Name}
		if shards, err = s.registered(ctx, tx, t, name); err != nil {
			return err
		}
		if shards == 0 {
			if shards, err = s.enrol(ctx, tx, t, name); err != nil {
				return err
			}
			if err := s.noteFeed(ctx, tx, by, t, name, member.Destination); err != nil {
				return err
			}
		}
		return s.direct(ctx, tx, by, name, member)
	})
	return shards, err
}

// countNew is where counting of what a new feed will send ends.
const countNew = 100_000

// noteFeed records that a feed was created, with how much it will send.
func (s *Store) noteFeed(ctx context.Context, tx *sql.Tx, by desk.By, t *table, name, destination string) error {
	d := &Desk{db: s.db, cfg: s.cfg}
	lanes, err := d.pending(ctx, tx, &served{t: t, name: name}, countNew)
	if err != nil {
		return err
	}
	e := desk.Entry{Action: "feed add", Feed: name, Target: map[string]any{"from": "oldest"}}
	for _, l := range lanes {
		e.Count += l.n
	}
	if destination != "" {
		e.Target["destination"] = destination
	}
	if e.Count >= countNew {
		e.Target["more"] = true
	}
	return s.cfg.note(ctx, tx, by, e)
}

// direct holds the member's destination against the one that the feed remembers.
func (s *Store) direct(ctx context.Context, tx *sql.Tx, by desk.By, name string, member postrider.Member) error {
	if member.Destination == "" {
		return nil
	}
	var has string
	err := s.cfg.stmt("SELECT coalesce(destination, '') FROM {feeds} WHERE feed = ").word(name).row(ctx, tx).Scan(&has)
	if err != nil || has == member.Destination {
		return err
	}
	if has != "" && !member.Force {
		return &postrider.DestinationError{Feed: name, Has: has, Wants: member.Destination}
	}
	_, err = s.cfg.stmt("UPDATE {feeds} SET destination = ").text(member.Destination).sql(" WHERE feed = ").word(name).exec(ctx, tx)
	if err != nil || has == "" {
		return err
	}
	return s.cfg.note(ctx, tx, by, desk.Entry{
		Action: "feed destination", Feed: name, Before: map[string]any{"destination": has}, After: map[string]any{"destination": member.Destination},
	})
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
				return fmt.Errorf("%w; a table serves one feed, and %s has that one: use its name, or remove it first",
					&postrider.NoFeedError{Feed: name, Feeds: []string{feed}}, table)
			case table != t.label:
				return fmt.Errorf("the feed serves table %s, not %s: give this one another name", table, t.label)
			}
			shards = n
			return nil
		})
	return shards, err
}

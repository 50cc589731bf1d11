package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

var (
	_ feeds.Store      = (*feedStore)(nil)
	_ feeds.Maintainer = (*feedStore)(nil)
	_ feeds.Canary     = (*feedStore)(nil)
)

// feedStore is the relay's side of a table of messages. It is safe for concurrent use.
type feedStore struct {
	db  *sql.DB
	cfg Config

	walking     sync.Mutex // guards what follows
	walked      int64      // the last row that a purge has passed
	walkedWhole time.Time  // when it has begun with the first row
	purgeNext   time.Time  // of a table that was adopted: when it is worth a look
}

// Open implements [feeds.Store]. What has become of a message stands in its row, so that it can go to one feed only: a second
// name is refused, unless the filters of both exclude each other.
func (s *feedStore) Open(ctx context.Context, name string, member feeds.Member) (feeds.Feed, error) {
	if member.Lease <= 0 {
		return nil, fmt.Errorf("table: a lease of %v would never be held", member.Lease)
	}
	if err := checkVersion(ctx, s.db, s.cfg); err != nil {
		return nil, err
	}
	if err := s.cfg.checkAutocommit(ctx, s.db); err != nil {
		return nil, err
	}
	t, err := bind(ctx, s.db, &s.cfg, s.cfg.Shards)
	if err != nil {
		return nil, err
	}
	if t.catalog != nil {
		if err := t.layout.Check(t.catalog); err != nil {
			return nil, err
		}
	}
	if member.From != (feeds.Origin{}) {
		return nil, fmt.Errorf("table: open feed %q: %w: a table's feed begins with all that waits there", name, postrider.ErrUnsupported)
	}
	shards, err := s.register(ctx, t, name, member)
	if err != nil {
		return nil, fmt.Errorf("table: open feed %q: %w", name, err)
	}
	if shards != t.shards { // they were fixed when the feed was first opened
		if t, err = bind(ctx, s.db, &s.cfg, shards); err != nil {
			return nil, err
		}
	}
	return &feed{store: s, t: t, name: name, member: member, id: postrider.NewID().String(), owned: make(map[int]*ownedShard)}, nil
}

// register makes the feed's entry and its leases, unless there are some, and returns how many shards it has.
func (s *feedStore) register(ctx context.Context, t *table, name string, member feeds.Member) (shards int, err error) {
	err = s.do(ctx, func(tx *sql.Tx) error {
		by := admin.By{Who: member.Name}
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
		} else if err := s.refilter(ctx, tx, by, name); err != nil {
			return err
		}
		return s.direct(ctx, tx, by, name, member)
	})
	return shards, err
}

// refilter remembers the feed's filter: what others may have of the table, and what operators see of it, depends on that.
func (s *feedStore) refilter(ctx context.Context, tx *sql.Tx, by admin.By, name string) error {
	var has string
	err := s.cfg.stmt("SELECT coalesce(filter, '') FROM {feeds} WHERE feed = ").Word(name).Row(ctx, tx).Scan(&has)
	wants := filterText(&s.cfg.Only)
	if err != nil || has == wants {
		return err
	}
	if _, err := s.cfg.stmt("UPDATE {feeds} SET filter = ").Text(wants).SQL(" WHERE feed = ").Word(name).Exec(ctx, tx); err != nil {
		return err
	}
	return s.cfg.own().Note(ctx, tx, by, admin.Entry{
		Action: "feed filter", Feed: name, Before: map[string]any{"only": has}, After: map[string]any{"only": wants},
	})
}

// countNew is where counting of what a new feed will send ends.
const countNew = 100_000

// noteFeed records that a feed was created, with how much it will send.
func (s *feedStore) noteFeed(ctx context.Context, tx *sql.Tx, by admin.By, t *table, name, destination string) error {
	d := &Admin{db: s.db, cfg: s.cfg}
	shards, err := d.pending(ctx, tx, &served{t: t, name: name, only: s.cfg.Only}, countNew)
	if err != nil {
		return err
	}
	e := admin.Entry{Action: "feed add", Feed: name, Target: map[string]any{"from": "oldest"}}
	for _, l := range shards {
		e.Count += l.n
	}
	if destination != "" {
		e.Target["destination"] = destination
	}
	if e.Count >= countNew {
		e.Target["more"] = true
	}
	return s.cfg.own().Note(ctx, tx, by, e)
}

// direct holds the member's destination against the one that the feed remembers.
func (s *feedStore) direct(ctx context.Context, tx *sql.Tx, by admin.By, name string, member feeds.Member) error {
	if member.Destination == "" {
		return nil
	}
	var has string
	err := s.cfg.stmt("SELECT coalesce(destination, '') FROM {feeds} WHERE feed = ").Word(name).Row(ctx, tx).Scan(&has)
	if err != nil || has == member.Destination {
		return err
	}
	if has != "" && !member.Force {
		return &feeds.DestinationError{Feed: name, Has: has, Wants: member.Destination}
	}
	_, err = s.cfg.stmt("UPDATE {feeds} SET destination = ").Text(member.Destination).SQL(" WHERE feed = ").Word(name).Exec(ctx, tx)
	if err != nil || has == "" {
		return err
	}
	return s.cfg.own().Note(ctx, tx, by, admin.Entry{
		Action: "feed destination", Feed: name, Before: map[string]any{"destination": has}, After: map[string]any{"destination": member.Destination},
	})
}

// enrol is register in a transaction that there is already.
func (s *feedStore) enrol(ctx context.Context, tx *sql.Tx, t *table, name string) (shards int, err error) {
	if shards, err = s.registered(ctx, tx, t, name); err != nil || shards > 0 {
		return shards, err
	}
	insert, otherwise := "INSERT INTO ", " ON CONFLICT DO NOTHING"
	if s.cfg.Dialect == sqltext.MySQL {
		insert, otherwise = "INSERT IGNORE INTO ", ""
	}
	_, err = s.cfg.stmt(insert, "{feeds} (feed, id, table_name, shards, filter, created_at) VALUES (").Word(name).SQL(", ").Text(postrider.NewID().String()).SQL(", ").Text(t.label).SQL(", ").
		Number(int64(t.shards)).SQL(", ").Text(filterText(&s.cfg.Only)).SQL(", {now})", otherwise).Exec(ctx, tx)
	if err != nil {
		return 0, err
	}
	if shards, err = s.registered(ctx, tx, t, name); err != nil {
		return 0, err
	}
	leases := s.cfg.stmt(insert, "{leases} (feed, shard) VALUES ")
	for i := range shards {
		if i > 0 {
			leases.SQL(", ")
		}
		leases.SQL("(").Word(name).SQL(", ", strconv.Itoa(i), ")")
	}
	_, err = leases.SQL(otherwise).Exec(ctx, tx)
	return shards, err
}

// registered returns how many shards the feed has, 0 if there is no such feed, and an error if rows of the table are another's. Only
// one caller at a time decides that.
func (s *feedStore) registered(ctx context.Context, tx *sql.Tx, t *table, name string) (shards int, err error) {
	var identity string
	if err := s.cfg.stmt("SELECT id FROM {identity} FOR UPDATE").Row(ctx, tx).Scan(&identity); err != nil {
		return 0, err
	}
	err = s.cfg.stmt("SELECT feed, table_name, shards, coalesce(filter, '') FROM {feeds} WHERE feed = ").Word(name).SQL(" OR table_name = ").Text(t.label).
		Each(ctx, tx, func(scan func(...any) error) error {
			var feed, table, filter string
			var n int
			if err := scan(&feed, &table, &n, &filter); err != nil {
				return err
			}
			only, err := parseFilter(filter)
			if err != nil {
				return err
			}
			switch {
			case feed != name && s.cfg.Only.Excludes(&only):
				return nil
			case feed != name:
				return fmt.Errorf("%w; a row of %s goes to one feed, and that one may have it: use its name, remove it first, or let the filters "+
					"(only) of both exclude each other", &feeds.NoFeedError{Feed: name, Feeds: []string{feed}}, table)
			case table != t.label:
				return fmt.Errorf("the feed serves table %s, not %s: give this one another name", table, t.label)
			}
			shards = n
			return nil
		})
	return shards, err
}

// checkAutocommit refuses sessions of MySQL in which a read outside of a transaction begins one: it would never see what is committed
// later, and what is written would be undone.
func (c *Config) checkAutocommit(ctx context.Context, q sqltext.Querier) error {
	if c.Dialect != sqltext.MySQL {
		return nil
	}
	on := true
	err := c.stmt("SELECT @@autocommit").Each(ctx, q, func(scan func(...any) error) error { return scan(&on) })
	if err == nil && !on {
		err = errors.New("table: sessions have autocommit off, so that nothing but explicit transactions would be committed; add autocommit=1 to the connection's parameters")
	}
	return err
}

// do runs f in a transaction of its own, again if others were in the way.
func (s *feedStore) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	return sqltext.Transact(ctx, s.db, f)
}

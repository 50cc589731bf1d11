package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
)

// countDeferred is the number at which the count of messages of one status stops.
const countDeferred = 10_000

// Gauges implements [admin.Gauges]. All figures come from one snapshot.
func (d *Admin) Gauges(ctx context.Context) (*admin.Standing, error) {
	s := &admin.Standing{Feeds: []admin.FeedStanding{}, Consumers: []admin.ConsumerStanding{}}
	err := d.look(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, d.cfg.in(`SELECT clock_timestamp(), NOT @schema@.at_home() OR EXISTS (SELECT FROM @schema@.identity i WHERE i.home <> nullif($1, '')),
			  CASE WHEN m.is_called THEN m.last_value ELSE 0 END - CASE WHEN c.is_called THEN c.last_value ELSE 0 END
			FROM @schema@.message_seq m, @schema@.canary_count c`), pgx.QueryExecModeExec, d.cfg.Home).Scan(&s.At, &s.Foreign, &s.Enqueued)
		if err != nil {
			return err
		}
		s.At = s.At.UTC()
		deferred, err := d.gaugeDeferred(ctx, tx)
		if err != nil {
			return err
		}
		if err := d.gaugeFeeds(ctx, tx, s, deferred); err != nil {
			return err
		}
		return d.gaugeConsumers(ctx, tx, s, deferred)
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: gauges: %w", explain(err))
	}
	return s, nil
}

// gaugeFeeds adds the feeds, with their members and shards.
func (d *Admin) gaugeFeeds(ctx context.Context, tx pgx.Tx, s *admin.Standing, deferred map[string]admin.DeferredCount) error {
	rows, err := tx.Query(ctx, d.cfg.in("SELECT f.name, f.paused, @schema@.canary_of(f.name) FROM @schema@.feeds f ORDER BY f.name"),
		pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	places := make(map[string]int)
	var name string
	var paused bool
	var canary *time.Time
	if _, err := pgx.ForEachRow(rows, []any{&name, &paused, &canary}, func() error {
		places[name] = len(s.Feeds)
		s.Feeds = append(s.Feeds, admin.FeedStanding{
			Name: name, Paused: paused, Canary: value(canary).UTC(), Deferred: deferred[name], Pending: admin.Estimate{Exact: true},
			Members: []admin.Member{}, Shards: []admin.Shard{},
		})
		return nil
	}); err != nil {
		return err
	}
	members, err := d.gaugeMembers(ctx, tx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if i, ok := places[m.feed]; ok {
			s.Feeds[i].Members = append(s.Feeds[i].Members, m.Member)
		}
	}
	rows, err = tx.Query(ctx, d.cfg.in(`SELECT feed, shard, base, coalesce(tenant, ''), coalesce(member::text, ''), until, at, settled, place,
		crashes, pending, exact, oldest FROM @schema@.gauge_shards() ORDER BY feed, shard`), pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	var l admin.Shard
	var feed, member string
	var settled, oldest *time.Time
	_, err = pgx.ForEachRow(rows, []any{&feed, &l.Shard, &l.Base, &l.Tenant, &member, &l.Until, &l.At, &settled, &l.Last,
		&l.Crashes, &l.Pending.N, &l.Pending.Exact, &oldest}, func() error {
		if i, ok := places[feed]; ok {
			addShard(&s.Feeds[i], l, member, value(settled).UTC(), value(oldest).UTC())
		}
		return nil
	})
	return err
}

func addShard(f *admin.FeedStanding, l admin.Shard, member string, settled, oldest time.Time) {
	l.At, l.Until, l.Oldest, l.Holder = l.At.UTC(), l.Until.UTC(), oldest, ""
	if member == "" {
		l.Until = time.Time{}
	}
	for i := range f.Members {
		if m := &f.Members[i]; m.ID == member {
			l.Holder = m.Name
			m.Shards = append(m.Shards, l.Shard)
		}
	}
	f.Shards = append(f.Shards, l)
	f.Pending.N += l.Pending.N
	f.Pending.Exact = f.Pending.Exact && l.Pending.Exact
	if !oldest.IsZero() && (f.Oldest.IsZero() || oldest.Before(f.Oldest)) {
		f.Oldest = oldest
	}
	if settled.After(f.Settled) {
		f.Settled = settled
	}
}

type memberOf struct {
	admin.Member
	feed string
}

// gaugeMembers returns the live relays, by feed and name.
func (d *Admin) gaugeMembers(ctx context.Context, tx pgx.Tx) ([]memberOf, error) {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT m.feed, m.member::text, m.name, s.at, m.heard, m.until
		FROM (SELECT m.feed, m.member, max(m.name) AS name, max(m.at) AS heard, max(m.until) AS until
		      FROM @schema@.feeds f JOIN @schema@.members m ON m.feed = f.name
		      WHERE m.until > clock_timestamp() GROUP BY m.feed, m.member HAVING NOT bool_or(m.gone)) m
		CROSS JOIN LATERAL (SELECT s.at FROM @schema@.members s WHERE s.feed = m.feed AND s.member = m.member ORDER BY s.at LIMIT 1) s
		ORDER BY m.feed, m.name, m.member`), pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (memberOf, error) {
		m := memberOf{Member: admin.Member{Shards: []int{}}}
		err := row.Scan(&m.feed, &m.ID, &m.Name, &m.Since, &m.Heard, &m.Until)
		m.Since, m.Heard, m.Until = m.Since.UTC(), m.Heard.UTC(), m.Until.UTC()
		return m, err
	})
}

// gaugeConsumers adds the consumers. It reads only the newest IDs of each, which are those recorded
// last, or nearly so.
func (d *Admin) gaugeConsumers(ctx context.Context, tx pgx.Tx, s *admin.Standing, deferred map[string]admin.DeferredCount) error {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT c.name, c.created_at,
		  (SELECT max(i.at) FROM (SELECT i.at FROM @schema@.inbox i WHERE i.consumer = c.n ORDER BY i.id DESC LIMIT 10) i),
		  h.at, h.process
		FROM @schema@.consumers c LEFT JOIN @schema@.consumer_heard h ON h.consumer = c.n ORDER BY c.name`), pgx.QueryExecModeExec)
	if err != nil {
		return err
	}
	var c admin.ConsumerStanding
	var last, heard *time.Time
	var process *string
	_, err = pgx.ForEachRow(rows, []any{&c.Name, &c.Created, &last, &heard, &process}, func() error {
		c.Created, c.Last, c.Deferred = c.Created.UTC(), value(last).UTC(), deferred[inbox.Feed(c.Name)]
		c.Heard, c.Process = value(heard).UTC(), value(process)
		s.Consumers = append(s.Consumers, c)
		return nil
	})
	return err
}

// gaugeDeferred returns the counts of deferred messages, by feed.
func (d *Admin) gaugeDeferred(ctx context.Context, tx pgx.Tx) (map[string]admin.DeferredCount, error) {
	rows, err := tx.Query(ctx, d.cfg.in(`SELECT feed, scheduled, retry, held, waiting, dead, parked, blocking, blocked
		FROM @schema@.gauge_deferred($1)`), pgx.QueryExecModeExec, countDeferred+1)
	if err != nil {
		return nil, err
	}
	all := make(map[string]admin.DeferredCount)
	var feed string
	var c admin.DeferredCount
	var blocking int
	_, err = pgx.ForEachRow(rows, []any{&feed, &c.Scheduled, &c.Retry, &c.Held, &c.Waiting, &c.Dead, &c.Parked, &blocking, &c.Blocked}, func() error {
		c.Exact = blocking <= countDeferred
		for _, n := range []*int{&c.Scheduled, &c.Retry, &c.Held, &c.Waiting, &c.Dead, &c.Parked, &c.Blocked} {
			c.Exact = c.Exact && *n <= countDeferred
			*n = min(*n, countDeferred)
		}
		all[strings.Clone(feed)] = c
		return nil
	})
	return all, err
}

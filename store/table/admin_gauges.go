package table

import (
	"context"
	"database/sql"
	"strings"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// countDeferred is how far messages of a status, and those that wait in a shard, are counted.
const countDeferred = 10_000

// Gauges implements [admin.Gauges]. All of it is as of one snapshot.
func (d *Admin) Gauges(ctx context.Context) (*admin.Standing, error) {
	s := &admin.Standing{Feeds: []admin.FeedStanding{}, Consumers: []admin.ConsumerStanding{}}
	err := d.look(ctx, func(tx *sql.Tx) error {
		names, err := d.feeds(ctx, tx)
		if err != nil {
			return err
		}
		t := names[0].t
		var now sql.NullInt64
		if err := d.cfg.stmt("SELECT ", d.cfg.Dialect.Micros(d.cfg.Dialect.Now())).Row(ctx, tx).Scan(&now); err != nil {
			return err
		}
		s.At = sqltext.Moment(now)
		if d.inbox != nil {
			if s.Consumers, err = d.inbox.Gauge(ctx, tx); err != nil {
				return err
			}
		}
		if t.ids == idInteger {
			var newest sql.NullInt64
			if err := d.cfg.stmt("SELECT ", strings.Replace(t.sequence(t.layout.ID), t.id, "max("+t.id+")", 1), " FROM ", t.name).Row(ctx, tx).Scan(&newest); err != nil {
				return err
			}
			s.Enqueued = newest.Int64
		}
		for _, f := range names {
			if f.name == "" {
				continue
			}
			standing, err := d.standing(ctx, tx, f, s.Enqueued)
			if err != nil {
				return err
			}
			s.Feeds = append(s.Feeds, standing)
		}
		return nil
	})
	if err != nil {
		return nil, d.failed("gauges", err)
	}
	return s, nil
}

func (d *Admin) standing(ctx context.Context, q sqltext.Querier, f *served, newest int64) (admin.FeedStanding, error) {
	s := admin.FeedStanding{
		Name: f.name, Paused: f.paused, Settled: f.settled, Pending: admin.Estimate{Exact: true}, Members: []admin.Member{}, Shards: []admin.Shard{},
	}
	members, err := d.members(ctx, q, f)
	if err != nil {
		return s, err
	}
	s.Members = append(s.Members, members...)
	pending, err := d.pending(ctx, q, f, countDeferred+1)
	if err != nil {
		return s, err
	}
	if err := d.shards(ctx, q, f, &s, pending, newest); err != nil {
		return s, err
	}
	if s.Canary, err = d.canary(ctx, q, f, pending); err != nil {
		return s, err
	}
	s.Deferred, err = d.gaugeDeferred(ctx, q, f)
	return s, err
}

// shards adds the shards. Where there is more to count than anybody would wait for, numbers tell about how much it is.
func (d *Admin) shards(ctx context.Context, q sqltext.Querier, f *served, s *admin.FeedStanding, pending map[int]shardPending, newest int64) error {
	micros := d.cfg.Dialect.Micros
	return d.cfg.stmt("SELECT shard, coalesce(holder, ''), ", micros("expires_at"), ", ", micros("changed_at"),
		", crashes, CASE WHEN expires_at > {now} THEN 1 ELSE 0 END FROM {leases} WHERE feed = ").Word(f.name).SQL(" ORDER BY shard").
		Each(ctx, q, func(scan func(...any) error) error {
			var l admin.Shard
			var holder string
			var until, changed sql.NullInt64
			var held bool
			if err := scan(&l.Shard, &holder, &until, &changed, &l.Crashes, &held); err != nil {
				return err
			}
			if l.Base, l.At = l.Shard, sqltext.Moment(changed); l.At.IsZero() {
				l.At = f.created
			}
			for i := range s.Members {
				if m := &s.Members[i]; held && m.ID == holder {
					l.Holder, l.Until = m.Name, sqltext.Moment(until)
					m.Shards = append(m.Shards, l.Shard)
					if m.Heard.After(l.At) { // leases are renewed when members are heard from
						l.At = m.Heard
					}
				}
			}
			p := pending[l.Shard]
			l.Oldest, l.Pending, l.Last = p.oldest, admin.Estimate{N: int64(p.n), Exact: p.n <= countDeferred}, newest
			if p.n > 0 {
				l.Last = p.first - 1
			}
			if !l.Pending.Exact {
				l.Pending.N = max(l.Pending.N, (newest-p.first)/int64(f.t.shards))
			}
			s.Shards = append(s.Shards, l)
			s.Pending.N += l.Pending.N
			s.Pending.Exact = s.Pending.Exact && l.Pending.Exact
			s.Oldest = earlier(s.Oldest, l.Oldest)
			return nil
		})
}

// members returns the relays that are alive, by name.
func (d *Admin) members(ctx context.Context, q sqltext.Querier, f *served) (members []admin.Member, err error) {
	micros := d.cfg.Dialect.Micros
	err = d.cfg.stmt("SELECT member, name, ", micros("since"), ", ", micros("heard_at"), ", ", micros("expires_at"),
		" FROM {members} WHERE expires_at > {now} AND feed = ").Word(f.name).SQL(" ORDER BY name, member").
		Each(ctx, q, func(scan func(...any) error) error {
			m := admin.Member{Shards: []int{}}
			var since, heard, until sql.NullInt64
			err := scan(&m.ID, &m.Name, &since, &heard, &until)
			m.Since, m.Heard, m.Until = sqltext.Moment(since), sqltext.Moment(heard), sqltext.Moment(until)
			members = append(members, m)
			return err
		})
	return members, err
}

// gaugeDeferred counts what is deferred.
func (d *Admin) gaugeDeferred(ctx context.Context, q sqltext.Querier, f *served) (admin.DeferredCount, error) {
	c := admin.DeferredCount{Exact: true}
	for status, n := range map[feeds.Status]*int{
		feeds.StatusScheduled: &c.Scheduled, feeds.StatusRetry: &c.Retry, feeds.StatusHeld: &c.Held, feeds.StatusWaiting: &c.Waiting,
		feeds.StatusDead: &c.Dead, feeds.StatusParked: &c.Parked,
	} {
		found, err := d.countDeferred(ctx, q, f, &admin.Filter{Statuses: []feeds.Status{status}}, countDeferred+1)
		if err != nil {
			return c, err
		}
		c.Exact = c.Exact && found <= countDeferred
		*n = min(found, countDeferred)
	}
	var blocking int
	err := d.cfg.stmt("SELECT count(*), count(DISTINCT x.order_key) FROM (SELECT order_key FROM {deferred} WHERE blocking = 1 AND order_key <> '' AND feed = ").
		Word(f.name).SQL(" LIMIT ").Number(countDeferred+1).SQL(") x").Row(ctx, q).Scan(&blocking, &c.Blocked)
	c.Exact = c.Exact && blocking <= countDeferred
	return c, err
}

package classic

import (
	"context"
	"database/sql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

// countAside is how far messages of a status, and those that wait in a shard, are counted.
const countAside = 10_000

// Gauges implements [desk.Gauges]. All of it is as of one snapshot.
func (d *Desk) Gauges(ctx context.Context) (*desk.Standing, error) {
	s := &desk.Standing{Feeds: []desk.FeedStanding{}, Consumers: []desk.ConsumerStanding{}}
	err := d.look(ctx, func(tx *sql.Tx) error {
		f, err := d.served(ctx, tx)
		if err != nil {
			return err
		}
		var now sql.NullInt64
		if err := d.cfg.stmt("SELECT ", d.cfg.Dialect.micros(d.cfg.Dialect.now())).row(ctx, tx).Scan(&now); err != nil {
			return err
		}
		s.At = moment(now)
		if s.Consumers, err = d.gaugeConsumers(ctx, tx); err != nil {
			return err
		}
		if f.t.ids == idInteger {
			var newest sql.NullInt64
			if err := d.cfg.stmt("SELECT max(", f.t.id, ") FROM ", f.t.name).row(ctx, tx).Scan(&newest); err != nil {
				return err
			}
			s.Enqueued = newest.Int64
		}
		if f.name == "" {
			return nil
		}
		standing, err := d.standing(ctx, tx, f, s.Enqueued)
		s.Feeds = append(s.Feeds, standing)
		return err
	})
	if err != nil {
		return nil, d.failed("gauges", err)
	}
	return s, nil
}

func (d *Desk) standing(ctx context.Context, q querier, f *served, newest int64) (desk.FeedStanding, error) {
	s := desk.FeedStanding{
		Name: f.name, Paused: f.paused, Settled: f.settled, Pending: desk.Estimate{Exact: true}, Members: []desk.Member{}, Lanes: []desk.Lane{},
	}
	members, err := d.members(ctx, q, f)
	if err != nil {
		return s, err
	}
	s.Members = append(s.Members, members...)
	pending, err := d.pending(ctx, q, f, countAside+1)
	if err != nil {
		return s, err
	}
	if err := d.lanes(ctx, q, f, &s, pending, newest); err != nil {
		return s, err
	}
	if s.Canary, err = d.canary(ctx, q, f, pending); err != nil {
		return s, err
	}
	s.Aside, err = d.gaugeAside(ctx, q, f)
	return s, err
}

// lanes adds the shards. Where there is more to count than anybody would wait for, numbers tell about how much it is.
func (d *Desk) lanes(ctx context.Context, q querier, f *served, s *desk.FeedStanding, pending map[int]lanePending, newest int64) error {
	micros := d.cfg.Dialect.micros
	return d.cfg.stmt("SELECT shard, coalesce(holder, ''), ", micros("expires_at"), ", ", micros("changed_at"),
		", crashes, CASE WHEN expires_at > {now} THEN 1 ELSE 0 END FROM {leases} WHERE feed = ").word(f.name).sql(" ORDER BY shard").
		each(ctx, q, func(scan func(...any) error) error {
			var l desk.Lane
			var holder string
			var until, changed sql.NullInt64
			var held bool
			if err := scan(&l.Shard, &holder, &until, &changed, &l.Crashes, &held); err != nil {
				return err
			}
			if l.Base, l.At = l.Shard, moment(changed); l.At.IsZero() {
				l.At = f.created
			}
			for i := range s.Members {
				if m := &s.Members[i]; held && m.ID == holder {
					l.Holder, l.Until = m.Name, moment(until)
					m.Shards = append(m.Shards, l.Shard)
					if m.Heard.After(l.At) { // leases are renewed when members are heard from
						l.At = m.Heard
					}
				}
			}
			p := pending[l.Shard]
			l.Oldest, l.Pending, l.Last = p.oldest, desk.Estimate{N: int64(p.n), Exact: p.n <= countAside}, newest
			if p.n > 0 {
				l.Last = p.first - 1
			}
			if !l.Pending.Exact {
				l.Pending.N = max(l.Pending.N, (newest-p.first)/int64(f.t.shards))
			}
			s.Lanes = append(s.Lanes, l)
			s.Pending.N += l.Pending.N
			s.Pending.Exact = s.Pending.Exact && l.Pending.Exact
			s.Oldest = earlier(s.Oldest, l.Oldest)
			return nil
		})
}

// members returns the relays that are alive, by name.
func (d *Desk) members(ctx context.Context, q querier, f *served) (members []desk.Member, err error) {
	micros := d.cfg.Dialect.micros
	err = d.cfg.stmt("SELECT member, name, ", micros("since"), ", ", micros("heard_at"), ", ", micros("expires_at"),
		" FROM {members} WHERE expires_at > {now} AND feed = ").word(f.name).sql(" ORDER BY name, member").
		each(ctx, q, func(scan func(...any) error) error {
			m := desk.Member{Shards: []int{}}
			var since, heard, until sql.NullInt64
			err := scan(&m.ID, &m.Name, &since, &heard, &until)
			m.Since, m.Heard, m.Until = moment(since), moment(heard), moment(until)
			members = append(members, m)
			return err
		})
	return members, err
}

// gaugeAside counts what is set aside.
func (d *Desk) gaugeAside(ctx context.Context, q querier, f *served) (desk.AsideCount, error) {
	c := desk.AsideCount{Exact: true}
	for status, n := range map[postrider.Status]*int{
		postrider.StatusScheduled: &c.Scheduled, postrider.StatusRetry: &c.Retry, postrider.StatusHeld: &c.Held, postrider.StatusWaiting: &c.Waiting,
		postrider.StatusDead: &c.Dead, postrider.StatusParked: &c.Parked,
	} {
		found, err := d.countAside(ctx, q, f, &desk.Filter{Statuses: []postrider.Status{status}}, countAside+1)
		if err != nil {
			return c, err
		}
		c.Exact = c.Exact && found <= countAside
		*n = min(found, countAside)
	}
	var blocking int
	err := d.cfg.stmt("SELECT count(*), count(DISTINCT x.order_key) FROM (SELECT order_key FROM {aside} WHERE blocking = 1 AND order_key <> '' AND feed = ").
		word(f.name).sql(" LIMIT ").number(countAside+1).sql(") x").row(ctx, q).Scan(&blocking, &c.Blocked)
	c.Exact = c.Exact && blocking <= countAside
	return c, err
}

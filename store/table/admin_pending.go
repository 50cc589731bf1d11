package table

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// shardPending is what waits in a shard.
type shardPending struct {
	n      int
	first  int64 // its place in the order
	oldest time.Time
}

// pending returns what waits, by shard, without what is deferred. Of a shard no more than most are counted, as far as the table lets
// shards be counted apart.
func (d *Admin) pending(ctx context.Context, q sqltext.Querier, f *served, most int) (map[int]shardPending, error) {
	t := f.t
	s := d.cfg.stmt()
	if t.layout.native {
		for shard := range t.shards {
			if shard > 0 {
				s.SQL(" UNION ALL ")
			}
			number := strconv.Itoa(shard)
			s.SQL("(SELECT ", number, ", count(*), min(x.id), NULL FROM (SELECT id FROM ", t.name, " WHERE ", t.wait, " AND shard = ", number).Add(filtered(t, &f.only)).SQL(
				" ORDER BY id LIMIT ").Number(int64(most)).SQL(") x)")
		}
	} else {
		enqueued := t.enqueued()
		if enqueued == "" {
			enqueued = "NULL"
		}
		s.SQL("SELECT x.c0, count(*), min(x.c1), min(x.c2) FROM (").Add(firstWaiting(f, int64(most)*int64(t.shards), nil, t.shard, t.seq, enqueued)).SQL(") x GROUP BY x.c0")
	}
	shards := make(map[int]shardPending)
	err := s.Each(ctx, q, func(scan func(...any) error) error {
		var shard int
		var l shardPending
		var first, oldest sql.NullInt64
		err := scan(&shard, &l.n, &first, &oldest)
		if l.first, l.oldest = first.Int64, sqltext.Moment(oldest); l.n > 0 {
			shards[shard] = l
		}
		return err
	})
	if err == nil && t.layout.native {
		err = d.oldest(ctx, q, t, shards)
	}
	return shards, err
}

// notDeferred adds the condition that a row is not deferred.
func notDeferred(t *table, feed string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		return s.SQL("NOT EXISTS (SELECT 1 FROM {deferred} a WHERE a.feed = ").Word(feed).SQL(" AND a.row_id = ", t.outerRowID(), ")")
	}
}

// oldest fills in when the first rows were written.
func (d *Admin) oldest(ctx context.Context, q sqltext.Querier, t *table, shards map[int]shardPending) error {
	var ids []string
	for _, l := range shards {
		ids = append(ids, strconv.FormatInt(l.first, 10))
	}
	if len(ids) == 0 {
		return nil
	}
	return d.cfg.stmt("SELECT shard, ", t.enqueued(), " FROM ", t.name, " WHERE ").Add(idIn(t, ids)).Each(ctx, q, func(scan func(...any) error) error {
		var shard int
		var at sql.NullInt64
		err := scan(&shard, &at)
		l := shards[shard]
		l.oldest = sqltext.Moment(at)
		shards[shard] = l
		return err
	})
}

// canary returns when the newest canary was written that has come through, of the shard where that is longest ago. What waits holds
// up the canaries behind it, so that those of a shard have come through as far as the first row that waits.
func (d *Admin) canary(ctx context.Context, q sqltext.Querier, f *served, shards map[int]shardPending) (time.Time, error) {
	var at sql.NullInt64
	err := d.cfg.stmt("SELECT ", d.cfg.Dialect.Micros("at"), " FROM {dedup} WHERE dedup_key = ").Word(canaryKey).Row(ctx, q).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) || !f.t.layout.native {
		return time.Time{}, nil
	}
	through := sqltext.Moment(at)
	for _, l := range shards {
		through = earlier(through, l.oldest)
	}
	return through, err
}

// earlier returns the earlier of two times, of which either may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

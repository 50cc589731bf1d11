package table

import (
	"context"
	"database/sql"
	"slices"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Blocked implements [admin.DeadLetters].
func (d *Admin) Blocked(ctx context.Context, feed string, limit int) ([]admin.BlockedKey, error) {
	keys, err := d.blocked(ctx, feed, limit)
	if err != nil || d.inbox == nil {
		return keys, d.failed("blocked keys", err)
	}
	more, err := d.inbox.Blocked(ctx, feed, limit)
	return merged(keys, more, limit), err
}

func (d *Admin) blocked(ctx context.Context, feed string, limit int) ([]admin.BlockedKey, error) {
	feeds, err := d.feeds(ctx, d.db)
	if err != nil {
		return nil, err
	}
	var all []admin.BlockedKey
	for _, f := range feeds {
		if f.name == "" || feed != "" && feed != f.name {
			continue
		}
		keys, err := d.blockedOf(ctx, f, limit)
		if err != nil {
			return nil, err
		}
		all = merged(all, keys, limit)
	}
	return all, nil
}

func (d *Admin) blockedOf(ctx context.Context, f *served, limit int) (keys []admin.BlockedKey, err error) {
	var firsts []place
	err = d.cfg.stmt("SELECT shard, min(seq) AS first, ", d.cfg.Dialect.Micros("min(deferred_at)"), " AS since, count(*) - 1 FROM {deferred} WHERE feed = ").
		Word(f.name).SQL(" AND blocking = 1 AND order_key <> '' GROUP BY shard, order_key ORDER BY since, first LIMIT ").Number(int64(limit)).
		Each(ctx, d.db, func(scan func(...any) error) error {
			k := admin.BlockedKey{Feed: f.name}
			var first place
			var since sql.NullInt64
			err := scan(&first.shard, &first.seq, &since, &k.Waiting)
			k.Since = sqltext.Moment(since)
			keys, firsts = append(keys, k), append(firsts, first)
			return err
		})
	if err != nil {
		return nil, err
	}
	heads, err := d.deadLettersAt(ctx, d.db, f, firsts)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		if l, ok := heads[firsts[i]]; ok {
			keys[i].Head, keys[i].Key = l.Deferred, l.OrderKey()
			keys[i].Head.Payload = nil
		}
	}
	return keys, nil
}

// deadLettersAt returns what is deferred in certain places.
func (d *Admin) deadLettersAt(ctx context.Context, q sqltext.Querier, f *served, places []place) (map[place]deadLetter, error) {
	found := make(map[place]deadLetter, len(places))
	for part := range slices.Chunk(places, chunk) {
		s := d.cfg.stmt("SELECT ", deferredColumns(d.cfg.Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name).SQL(" AND (")
		for i, p := range part {
			if i > 0 {
				s.SQL(" OR ")
			}
			s.SQL("a.shard = ").Number(int64(p.shard)).SQL(" AND a.seq = ").Number(p.seq)
		}
		rows, err := deferredRows(ctx, q, s.SQL(")"))
		if err != nil {
			return nil, err
		}
		deadLetters, err := d.withMessages(ctx, q, f, rows)
		if err != nil {
			return nil, err
		}
		for i := range deadLetters {
			found[rows[i].place] = deadLetters[i]
		}
	}
	return found, nil
}

// merged puts blocked keys of feeds and consumers together.
func merged(a, b []admin.BlockedKey, limit int) []admin.BlockedKey {
	all := append(a, b...)
	slices.SortStableFunc(all, func(a, b admin.BlockedKey) int { return a.Since.Compare(b.Since) })
	return all[:min(len(all), limit)]
}

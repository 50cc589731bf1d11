package classic

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

const (
	// maxBehind is how many messages Due returns behind one that blocks its key.
	maxBehind = 100
	// overtaken is how many of a shard, due for longest, are looked at for the sake of their priority: a message overtakes no more
	// than these, and a larger number of them costs no more.
	overtaken = 1000
)

// Blocked implements [postrider.Deferrer]. The first message that blocks a key never waits for another, so those that do are left
// out: there may be very many of a key.
func (f *feed) Blocked(ctx context.Context, shard int) (keys []string, err error) {
	s := f.cfg().stmt("SELECT order_key FROM {aside} WHERE feed = ").word(f.name).sql(" AND shard = ").number(int64(shard))
	s.sql(" AND blocking = 1 AND status <> 'waiting' AND order_key IS NOT NULL")
	seen := make(map[string]bool)
	err = s.each(ctx, f.store.db, func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("classic: blocked keys: %w", err)
	}
	return keys, nil
}

// Due implements [postrider.Deferrer].
func (f *feed) Due(ctx context.Context, shards []int, limit int) (postrider.Due, error) {
	due := postrider.Due{Next: -1}
	if len(shards) == 0 || limit < 1 {
		return due, nil
	}
	// One moment for all statements: what comes due between two of them must not be missed by both.
	var now sql.NullInt64
	if err := f.cfg().stmt("SELECT ", f.cfg().Dialect.micros("{now}")).row(ctx, f.store.db).Scan(&now); err != nil {
		return due, fmt.Errorf("classic: due: %w", err)
	}
	rows, err := f.due(ctx, shards, moment(now), limit)
	if err != nil {
		return due, fmt.Errorf("classic: due: %w", err)
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].rowID
	}
	records, err := f.t.load(ctx, f.store.db, ids)
	if err != nil {
		return due, fmt.Errorf("classic: due: %w", err)
	}
	var gone []postrider.Conclusion
	for i := range rows {
		r := &rows[i]
		if m, ok := records[r.rowID]; ok {
			due.Messages = append(due.Messages, r.with(m.Message, f.name))
		} else {
			gone = append(gone, postrider.Conclusion{Shard: r.shard, Seq: r.seq, Delivered: true})
		}
	}
	if _, err := f.Conclude(ctx, gone); err != nil { // somebody has deleted the rows: what waits behind them must go on
		return postrider.Due{}, err
	}
	if due.Next, err = f.nextDue(ctx, shards, moment(now)); err != nil {
		return due, fmt.Errorf("classic: due: %w", err)
	}
	return due, nil
}

// due returns what is to be sent, and what may follow it.
func (f *feed) due(ctx context.Context, shards []int, now time.Time, limit int) ([]asideRow, error) {
	heads, err := f.dueHeads(ctx, shards, now, limit)
	if err != nil {
		return nil, err
	}
	var due []asideRow
	for part := range slices.Chunk(heads, 25) {
		behind, err := f.behind(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, head := range part {
			if len(due) >= limit {
				return due, nil
			}
			due = append(due, head)
			n := 0
			for _, r := range behind[shardKey{head.shard, head.key}] {
				if !head.blocks() || r.seq <= head.seq {
					continue
				}
				if r.status != postrider.StatusWaiting || n == maxBehind { // what is behind waits for that one too
					break
				}
				due, n = append(due, r), n+1
			}
		}
	}
	return due, nil
}

// dueHeads returns those whose time has come.
func (f *feed) dueHeads(ctx context.Context, shards []int, now time.Time, limit int) ([]asideRow, error) {
	s := f.cfg().stmt("SELECT ", f.cfg().Dialect.asideColumns(), " FROM (SELECT * FROM (")
	for i, shard := range shards {
		if i > 0 {
			s.sql(" UNION ALL ")
		}
		s.sql("(SELECT feed, shard, seq, priority, available_at FROM {aside} WHERE feed = ").word(f.name).sql(" AND shard = ").number(int64(shard))
		s.sql(" AND available_at <= ").at(now).sql(" ORDER BY available_at, seq LIMIT ").number(int64(max(overtaken, limit))).sql(")")
	}
	s.sql(") o ORDER BY priority DESC, available_at, seq LIMIT ").number(int64(limit))
	return s.sql(`) h JOIN {aside} a ON a.feed = h.feed AND a.shard = h.shard AND a.seq = h.seq
		ORDER BY h.priority DESC, h.available_at, h.seq`).asideRows(ctx, f.store.db)
}

// behind returns those that come after the first of each key that one of the heads blocks.
func (f *feed) behind(ctx context.Context, heads []asideRow) (map[shardKey][]asideRow, error) {
	first := make(map[shardKey]int64)
	for _, h := range heads {
		k := shardKey{h.shard, h.key}
		if seq, ok := first[k]; h.blocks() && (!ok || h.seq < seq) {
			first[k] = h.seq
		}
	}
	if len(first) == 0 {
		return nil, nil
	}
	s := f.cfg().stmt()
	more := false
	for k, seq := range first {
		if more {
			s.sql(" UNION ALL ")
		}
		more = true
		s.sql("(SELECT ", f.cfg().Dialect.asideColumns(), " FROM {aside} a WHERE a.feed = ").word(f.name).sql(" AND a.order_key = ").word(k.key)
		s.sql(" AND a.seq > ").number(seq).sql(" AND a.blocking = 1 ORDER BY a.seq LIMIT ").number(maxBehind).sql(")")
	}
	rows, err := s.asideRows(ctx, f.store.db)
	slices.SortFunc(rows, func(a, b asideRow) int { return cmp.Compare(a.seq, b.seq) })
	behind := make(map[shardKey][]asideRow)
	for _, r := range rows {
		k := shardKey{r.shard, r.key}
		behind[k] = append(behind[k], r)
	}
	return behind, err
}

// nextDue returns how long after a moment another one is due; negative if none is.
func (f *feed) nextDue(ctx context.Context, shards []int, now time.Time) (time.Duration, error) {
	s := f.cfg().stmt("SELECT ", f.cfg().Dialect.micros("min(n.available_at)"), " FROM (")
	for i, shard := range shards {
		if i > 0 {
			s.sql(" UNION ALL ")
		}
		s.sql("(SELECT available_at FROM {aside} WHERE feed = ").word(f.name).sql(" AND shard = ").number(int64(shard))
		s.sql(" AND available_at > ").at(now).sql(" ORDER BY available_at LIMIT 1)")
	}
	var next sql.NullInt64
	if err := s.sql(") n").row(ctx, f.store.db).Scan(&next); err != nil || !next.Valid {
		return -1, err
	}
	return moment(next).Sub(now), nil
}

// anyDue adds a subquery that returns 1 if something is due now or will be, and else null. It asks shard by shard: the index would
// go through all that is dead otherwise.
func (f *feed) anyDue(s *stmt) *stmt {
	s.sql("(SELECT max(d.one) FROM (")
	for shard := range f.t.shards {
		if shard > 0 {
			s.sql(" UNION ALL ")
		}
		s.sql("(SELECT 1 AS one FROM {aside} WHERE feed = ").word(f.name).sql(" AND shard = ").number(int64(shard))
		s.sql(" AND available_at IS NOT NULL LIMIT 1)")
	}
	return s.sql(") d)")
}

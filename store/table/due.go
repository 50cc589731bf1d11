package table

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

const (
	// maxBehind is how many messages Due returns behind one that blocks its key.
	maxBehind = 100
	// overtaken is how many of a shard, due for longest, are looked at for the sake of their priority: a message overtakes no more
	// than these, and a larger number of them costs no more.
	overtaken = 1000
)

// Blocked implements [feeds.Deferrer]. The first message that blocks a key never waits for another, so those that do are left
// out: there may be very many of a key.
func (f *feed) Blocked(ctx context.Context, shard int) (keys []string, err error) {
	s := f.cfg().stmt("SELECT order_key FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(shard))
	s.SQL(" AND blocking = 1 AND status <> 'waiting' AND order_key IS NOT NULL")
	seen := make(map[string]bool)
	err = s.Each(ctx, f.store.db, func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("table: blocked keys: %w", err)
	}
	return keys, nil
}

// Due implements [feeds.Deferrer].
func (f *feed) Due(ctx context.Context, want feeds.DueRequest) (feeds.Due, error) {
	due := feeds.Due{Next: -1}
	if len(want.Shards) == 0 || want.Limit < 1 {
		return due, nil
	}
	// One moment for all statements: what comes due between two of them must not be missed by both.
	var now sql.NullInt64
	if err := f.cfg().stmt("SELECT ", f.cfg().Dialect.Micros("{now}")).Row(ctx, f.store.db).Scan(&now); err != nil {
		return due, fmt.Errorf("table: due: %w", err)
	}
	rows, err := f.due(ctx, want, sqltext.Moment(now))
	if err != nil {
		return due, fmt.Errorf("table: due: %w", err)
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].rowID
	}
	records, looked, err := f.within(ctx, ids, want.Bytes)
	if err != nil {
		return due, fmt.Errorf("table: due: %w", err)
	}
	var gone []feeds.Conclusion
	for i := range rows[:looked] {
		r := &rows[i]
		if m, ok := records[r.rowID]; ok {
			due.Messages = append(due.Messages, r.with(m.Message, f.name))
		} else {
			gone = append(gone, feeds.Conclusion{Shard: r.shard, Seq: r.seq, Delivered: true})
		}
	}
	if _, err := f.Conclude(ctx, gone); err != nil { // somebody has deleted the rows, or marked them: what waits behind them must go on
		return feeds.Due{}, err
	}
	if due.Next, err = f.nextDue(ctx, want.Shards, sqltext.Moment(now)); err != nil {
		return due, fmt.Errorf("table: due: %w", err)
	}
	return due, nil
}

// within reads messages, as many from the first on as fit into a budget of bytes, and at least one. It returns how many rows it
// has come to. 0 means no limit.
func (f *feed) within(ctx context.Context, ids []string, bytes int) (records map[string]record, looked int, err error) {
	records = make(map[string]record)
	left := bytes
	for part := range slices.Chunk(ids, chunk) {
		found, err := f.t.loadBrief(ctx, f.store.db, part, "CASE WHEN "+f.t.delivered()+" THEN 0 ELSE 1 END = 1", bytes)
		if err != nil {
			return nil, 0, err
		}
		n := 0
		for _, id := range part {
			if left -= found[id].bytes; bytes > 0 && left < 0 && len(records)+n > 0 {
				break
			}
			n++
		}
		for id := range found {
			if !slices.Contains(part[:n], id) {
				delete(found, id)
			}
		}
		if err := f.t.complete(ctx, f.store.db, found); err != nil {
			return nil, 0, err
		}
		maps.Copy(records, found)
		if looked += n; n < len(part) {
			break
		}
	}
	return records, looked, nil
}

// dueHead is a message that may be sent, with what waits behind it.
type dueHead struct {
	deferredRow
	probe bool // alone
	rank  int  // among those whose time has come, or those that were held
}

// due returns what is to be sent, and what may follow it. Those whose time has come and those that were held take turns, so that
// neither keeps the other from being sent.
func (f *feed) due(ctx context.Context, want feeds.DueRequest, now time.Time) ([]deferredRow, error) {
	timed, err := f.dueHeads(ctx, want.Shards, now, want.Limit)
	if err != nil {
		return nil, err
	}
	held, err := f.released(ctx, want)
	if err != nil {
		return nil, err
	}
	var heads []dueHead
	for i, r := range timed {
		heads = append(heads, dueHead{deferredRow: r, rank: i})
	}
	heads = append(heads, held...)
	slices.SortStableFunc(heads, func(a, b dueHead) int { return cmp.Compare(a.rank, b.rank) })
	var due []deferredRow
	for part := range slices.Chunk(heads, 25) {
		behind, err := f.behind(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, head := range part {
			if len(due) >= want.Limit {
				return due, nil
			}
			due = append(due, head.deferredRow)
			n := 0
			for _, r := range behind[shardKey{head.shard, head.key}] {
				if !head.blocks() || head.probe || r.seq <= head.seq {
					continue
				}
				if r.status != feeds.StatusWaiting || n == maxBehind { // what is behind waits for that one too
					break
				}
				due, n = append(due, r), n+1
			}
		}
	}
	return due, nil
}

// dueHeads returns those whose time has come.
func (f *feed) dueHeads(ctx context.Context, shards []int, now time.Time, limit int) ([]deferredRow, error) {
	s := f.cfg().stmt("SELECT ", deferredColumns(f.cfg().Dialect), " FROM (SELECT * FROM (")
	for i, shard := range shards {
		if i > 0 {
			s.SQL(" UNION ALL ")
		}
		s.SQL("(SELECT feed, shard, seq, priority, available_at FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(shard))
		s.SQL(" AND available_at <= ").At(now).SQL(" ORDER BY available_at, seq LIMIT ").Number(int64(max(overtaken, limit))).SQL(")")
	}
	s.SQL(") o ORDER BY priority DESC, available_at, seq LIMIT ").Number(int64(limit))
	return deferredRows(ctx, f.store.db, s.SQL(`) h JOIN {deferred} a ON a.feed = h.feed AND a.shard = h.shard AND a.seq = h.seq
		ORDER BY h.priority DESC, h.available_at, h.seq`))
}

// behind returns those that come after the first of each key that one of the heads blocks.
func (f *feed) behind(ctx context.Context, heads []dueHead) (map[shardKey][]deferredRow, error) {
	first := make(map[shardKey]int64)
	for _, h := range heads {
		k := shardKey{h.shard, h.key}
		if seq, ok := first[k]; h.blocks() && !h.probe && (!ok || h.seq < seq) {
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
			s.SQL(" UNION ALL ")
		}
		more = true
		s.SQL("(SELECT ", deferredColumns(f.cfg().Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name).SQL(" AND a.order_key = ").Word(k.key)
		s.SQL(" AND a.seq > ").Number(seq).SQL(" AND a.blocking = 1 ORDER BY a.seq LIMIT ").Number(maxBehind).SQL(")")
	}
	rows, err := deferredRows(ctx, f.store.db, s)
	slices.SortFunc(rows, func(a, b deferredRow) int { return cmp.Compare(a.seq, b.seq) })
	behind := make(map[shardKey][]deferredRow)
	for _, r := range rows {
		k := shardKey{r.shard, r.key}
		behind[k] = append(behind[k], r)
	}
	return behind, err
}

// nextDue returns how long after a moment another one is due; negative if none is.
func (f *feed) nextDue(ctx context.Context, shards []int, now time.Time) (time.Duration, error) {
	s := f.cfg().stmt("SELECT ", f.cfg().Dialect.Micros("min(n.available_at)"), " FROM (")
	for i, shard := range shards {
		if i > 0 {
			s.SQL(" UNION ALL ")
		}
		s.SQL("(SELECT available_at FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(shard))
		s.SQL(" AND available_at > ").At(now).SQL(" ORDER BY available_at LIMIT 1)")
	}
	var next sql.NullInt64
	if err := s.SQL(") n").Row(ctx, f.store.db).Scan(&next); err != nil || !next.Valid {
		return -1, err
	}
	return sqltext.Moment(next).Sub(now), nil
}

// anyDue adds a subquery that returns 1 if something is due now or will be, and else null. It asks shard by shard: the index would
// go through all that is dead otherwise.
func (f *feed) anyDue(s *sqltext.Stmt) *sqltext.Stmt {
	s.SQL("(SELECT max(d.one) FROM (")
	for shard := range f.t.shards {
		if shard > 0 {
			s.SQL(" UNION ALL ")
		}
		s.SQL("(SELECT 1 AS one FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(shard))
		s.SQL(" AND available_at IS NOT NULL LIMIT 1)")
		s.SQL(" UNION ALL (SELECT 1 FROM {deferred} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(shard))
		s.SQL(" AND name_hash IS NOT NULL LIMIT 1)")
	}
	return s.SQL(") d)")
}

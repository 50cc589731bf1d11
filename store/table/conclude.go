package table

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Conclude implements [feeds.Deferrer].
func (f *feed) Conclude(ctx context.Context, done []feeds.Conclusion) (free []string, err error) {
	var shards []int
	for _, c := range done {
		shards = append(shards, c.Shard)
	}
	err = f.owning(ctx, shards, func(tx *sql.Tx) error {
		free, err = f.conclude(ctx, tx, done)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("table: conclude: %w", err)
	}
	return free, nil
}

// owning runs do in a transaction in which the shards, all of them, cannot be taken away.
func (f *feed) owning(ctx context.Context, shards []int, do func(tx *sql.Tx) error) error {
	slices.Sort(shards)
	if shards = slices.Compact(shards); len(shards) == 0 {
		return nil
	}
	return f.fenced(ctx, shards, func(tx *sql.Tx, held []int) error {
		for _, s := range shards {
			if !slices.Contains(held, s) {
				return fmt.Errorf("shard %d is not held any more", s)
			}
		}
		return do(tx)
	})
}

func (f *feed) conclude(ctx context.Context, tx sqltext.Querier, done []feeds.Conclusion) ([]string, error) {
	rows, err := f.concluded(ctx, tx, done)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	begun := f.begun
	f.mu.Unlock()
	var failed, delivered []string
	var keys []shardKey
	for i := range done {
		c := &done[i]
		r, ok := rows[place{c.Shard, c.Seq}]
		if !ok || !r.again() {
			continue
		}
		delete(rows, r.place) // what is said first about a message counts

		if begun == (begunRow{c.Shard, r.rowID}) { // that attempt has ended
			if err := f.forgetStart(ctx, tx, begun); err != nil {
				return nil, err
			}
		}
		if !c.Delivered {
			if err := f.tried(ctx, tx, r.rowID, c); err != nil {
				return nil, err
			}
			if failed = append(failed, r.rowID); !c.Overtaken {
				continue
			}
		} else {
			delivered = append(delivered, r.rowID)
		}
		if k := (shardKey{c.Shard, r.key}); r.blocks() && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if err := f.t.mirror(ctx, tx, f.name, failed); err != nil {
		return nil, err
	}
	if err := f.cfg().forget(ctx, tx, f.name, delivered); err != nil {
		return nil, err
	}
	if err := f.t.publish(ctx, tx, delivered); err != nil {
		return nil, err
	}
	return f.t.promote(ctx, tx, f.name, keys)
}

// concluded returns what stands about the messages that are concluded.
func (f *feed) concluded(ctx context.Context, tx sqltext.Querier, done []feeds.Conclusion) (map[place]deferredRow, error) {
	seqs := make(map[int][]string) // by shard
	for _, c := range done {
		seqs[c.Shard] = append(seqs[c.Shard], strconv.FormatInt(c.Seq, 10))
	}
	rows := make(map[place]deferredRow)
	for shard, some := range seqs {
		for part := range slices.Chunk(some, chunk) {
			s := f.cfg().stmt("SELECT ", deferredColumns(f.cfg().Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name)
			s.SQL(" AND a.shard = ").Number(int64(shard)).SQL(" AND ").OneOf("a.seq", "bigint", part, func(n string) string { return n })
			found, err := deferredRows(ctx, tx, s)
			if err != nil {
				return nil, err
			}
			for _, r := range found {
				rows[r.place] = r
			}
		}
	}
	return rows, nil
}

// tried records an attempt that has failed.
func (f *feed) tried(ctx context.Context, tx sqltext.Querier, rowID string, c *feeds.Conclusion) error {
	s := f.cfg().stmt("UPDATE {deferred} SET status = ").Text(string(c.Status)).SQL(", attempts = ").Number(int64(c.Attempts))
	ago(s.SQL(", tried_at = {now}, sent_at = "), c.Sent).SQL(", last_error = ").Add(causeText(c.Cause)).SQL(", available_at = ")
	if c.Status == feeds.StatusRetry {
		s.Later("{now}", max(c.Delay, 0))
	} else {
		s.SQL("NULL")
	}
	s.SQL(", name = ")
	if c.Status == feeds.StatusHeld {
		s.Text(storable(c.Name)).SQL(", name_hash = ").Word(nameHash(c.Name))
	} else {
		s.SQL("NULL, name_hash = NULL")
	}
	if c.Overtaken {
		s.SQL(", blocking = 0")
	}
	_, err := s.SQL(" WHERE feed = ").Word(f.name).SQL(" AND row_id = ").Word(rowID).Exec(ctx, tx)
	return err
}

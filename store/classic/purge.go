package classic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// purgeTime is for how long one call of Maintain deletes.
const purgeTime = time.Second

// keepProblems is for how long a problem that is over is kept.
const keepProblems = 7 * 24 * time.Hour

// forgotten is when a member that was not heard from is no longer shown.
const forgotten = time.Hour

// Maintain implements [postrider.Maintainer]: it deletes what was delivered and is out of its retention, dedup keys out of their
// window, members that are long gone, and problems that have long been over. All of it in short transactions that lock nothing but what they delete.
func (s *Store) Maintain(ctx context.Context) error {
	until := time.Now().Add(purgeTime)
	err := errors.Join(s.purgeOwn(ctx, until), s.purge(ctx, until))
	if err != nil {
		return fmt.Errorf("classic: maintain: %w", err)
	}
	return nil
}

// purgeOwn deletes out of Postrider's own tables.
func (s *Store) purgeOwn(ctx context.Context, until time.Time) error {
	err := s.do(ctx, func(tx *sql.Tx) error {
		_, err := s.cfg.stmt("DELETE FROM {members} WHERE expires_at < ").later("{now}", -forgotten).exec(ctx, tx)
		if err == nil {
			_, err = s.cfg.stmt("DELETE FROM {problems} WHERE over_at < ").later("{now}", -keepProblems).exec(ctx, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.inChunks(ctx, until, func(tx *sql.Tx) (int, error) {
		q := s.cfg.stmt("DELETE FROM {dedup} WHERE at < ").later("{now}", -s.cfg.DedupWindow)
		if s.cfg.Dialect == PostgreSQL {
			q = s.cfg.stmt("DELETE FROM {dedup} WHERE dedup_key IN (SELECT dedup_key FROM {dedup} WHERE at < ").
				later("{now}", -s.cfg.DedupWindow).sql(" LIMIT ").number(int64(s.cfg.PurgeChunk)).sql(" FOR UPDATE SKIP LOCKED)")
		} else {
			q.sql(" ORDER BY at LIMIT ").number(int64(s.cfg.PurgeChunk))
		}
		return affected(q.exec(ctx, tx))
	})
}

func affected(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// inChunks deletes, one transaction after the other, until one finds less than a chunk, or the time is over.
func (s *Store) inChunks(ctx context.Context, until time.Time, chunk func(tx *sql.Tx) (int, error)) error {
	for {
		n := 0
		err := s.do(ctx, func(tx *sql.Tx) (err error) {
			n, err = chunk(tx)
			return err
		})
		if err != nil || n < s.cfg.PurgeChunk || time.Now().After(until) {
			return err
		}
	}
}

// purge deletes messages that were delivered.
func (s *Store) purge(ctx context.Context, until time.Time) error {
	if s.cfg.Retention <= 0 || s.cfg.Layout.State.Delete {
		return nil
	}
	t, err := bind(ctx, s.db, &s.cfg, s.cfg.Shards)
	if err != nil {
		return err
	}
	done := t.done()
	if done == "" {
		return fmt.Errorf("table %s does not say when a row was delivered: it cannot have a retention", t.layout.Table)
	}
	if t.layout.native {
		return s.walk(ctx, t, until)
	}
	return s.inChunks(ctx, until, func(tx *sql.Tx) (int, error) {
		var ids []string
		err := s.old(t, s.cfg.stmt("SELECT ", t.rowID, " FROM ", t.name, " WHERE ")).sql(" LIMIT ").number(int64(s.cfg.PurgeChunk)).
			each(ctx, tx, func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				ids = append(ids, id)
				return err
			})
		if err != nil {
			return 0, err
		}
		return len(ids), s.remove(ctx, tx, t, ids)
	})
}

// done is the condition that a row was delivered, or discarded.
func (t *table) done() string {
	state := &t.layout.State
	switch {
	case t.layout.native:
		return t.isOneOf(state.Status, []string{state.Published, "discarded"})
	case t.doneAt() == "":
		return ""
	case state.Status != "":
		return t.isOneOf(state.Status, []string{state.Published})
	}
	return t.quote(state.PublishedAt) + " IS NOT NULL"
}

// doneAt is when a row was delivered, as far as it says.
func (t *table) doneAt() string {
	state := &t.layout.State
	for _, column := range []string{state.PublishedAt, state.UpdatedAt, t.layout.Columns.CreatedAt} {
		if column != "" {
			return t.quote(column)
		}
	}
	return ""
}

// old adds the condition that a row was delivered and is out of its retention.
func (s *Store) old(t *table, q *stmt) *stmt {
	return q.sql(t.done(), " AND ", t.doneAt(), " < ").later(t.now(), -s.cfg.Retention)
}

// remove deletes rows, unless they are to be delivered again by now.
func (s *Store) remove(ctx context.Context, tx *sql.Tx, t *table, ids []string) error {
	return t.remove(ctx, tx, ids, func(q *stmt) { s.old(t, q) })
}

// walk deletes from the lowest number on. It ends where nothing can be deleted any more because of what is still on its way or
// was delivered lately; what operators have to decide about is passed.
func (s *Store) walk(ctx context.Context, t *table, until time.Time) error {
	after := int64(0)
	for time.Now().Before(until) {
		var ids []string
		seen, moving := 0, false
		q := s.cfg.stmt("SELECT id, CASE WHEN ")
		s.old(t, q).sql(" THEN 1 ELSE 0 END, CASE WHEN ", t.wait, " OR ", t.done(), " THEN 1 ELSE 0 END FROM ", t.name, " WHERE id > ").number(after).sql(
			" ORDER BY ", strings.Join(t.order, ", "), " LIMIT ").number(int64(s.cfg.PurgeChunk))
		err := q.each(ctx, s.db, func(scan func(...any) error) error {
			var old, moves bool
			err := scan(&after, &old, &moves)
			if seen++; old {
				ids = append(ids, strconv.FormatInt(after, 10))
			}
			moving = moving || moves
			return err
		})
		if err != nil {
			return err
		}
		if err := s.do(ctx, func(tx *sql.Tx) error { return s.remove(ctx, tx, t, ids) }); err != nil {
			return err
		}
		if seen < s.cfg.PurgeChunk || len(ids) == 0 && moving {
			return nil
		}
	}
	return nil
}

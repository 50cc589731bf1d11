package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

const (
	// purgeTime is for how long one call of Maintain deletes messages, and for how long dedup keys: neither keeps the other from it.
	purgeTime = 10 * time.Second
	// fruitless is how many chunks in which nothing can be deleted a call passes.
	fruitless = 100
	// walkWhole is how often a walk begins with the first row again: an operator may have had one sent that was passed.
	walkWhole = time.Hour
)

// keepProblems is for how long a problem that is over is kept.
const keepProblems = 7 * 24 * time.Hour

// forgotten is when a member that was not heard from is no longer shown.
const forgotten = time.Hour

// Maintain implements [feeds.Maintainer]: it deletes what was delivered and is out of its retention, dedup keys out of their
// window, members that are long gone, and problems that have long been over. All of it in short transactions that lock nothing but what they delete.
func (s *feedStore) Maintain(ctx context.Context) error {
	err := errors.Join(s.purgeOwn(ctx), s.purge(ctx))
	if err != nil {
		return fmt.Errorf("table: maintain: %w", err)
	}
	return nil
}

// purgeOwn deletes out of Postrider's own tables.
func (s *feedStore) purgeOwn(ctx context.Context) error {
	err := s.do(ctx, func(tx *sql.Tx) error {
		_, err := s.cfg.stmt("DELETE FROM {members} WHERE expires_at < ").Later("{now}", -forgotten).Exec(ctx, tx)
		if err == nil {
			_, err = s.cfg.stmt("DELETE FROM {problems} WHERE over_at < ").Later("{now}", -keepProblems).Exec(ctx, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.inChunks(ctx, func(tx *sql.Tx) (int, error) {
		q := s.cfg.stmt("DELETE FROM {dedup} WHERE at < ").Later("{now}", -s.cfg.DedupWindow)
		if s.cfg.Dialect == sqltext.PostgreSQL {
			q = s.cfg.stmt("DELETE FROM {dedup} WHERE dedup_key IN (SELECT dedup_key FROM {dedup} WHERE at < ").
				Later("{now}", -s.cfg.DedupWindow).SQL(" LIMIT ").Number(int64(s.cfg.PurgeChunk)).SQL(" FOR UPDATE SKIP LOCKED)")
		} else {
			q.SQL(" ORDER BY at LIMIT ").Number(int64(s.cfg.PurgeChunk))
		}
		return affected(q.Exec(ctx, tx))
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
func (s *feedStore) inChunks(ctx context.Context, chunk func(tx *sql.Tx) (int, error)) error {
	until := time.Now().Add(purgeTime)
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

// purge deletes messages that were delivered. A table that was adopted may have no index for that, so that it looks at all rows to find
// none: then it waits for a part of the retention.
func (s *feedStore) purge(ctx context.Context) error {
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
		return s.walk(ctx, t)
	}
	s.walking.Lock()
	defer s.walking.Unlock()
	if time.Now().Before(s.purgeNext) {
		return nil
	}
	found := 0
	defer func() {
		if found == 0 {
			s.purgeNext = time.Now().Add(min(s.cfg.Retention/20, time.Hour))
		}
	}()
	return s.inChunks(ctx, func(tx *sql.Tx) (int, error) {
		var ids []string
		err := s.old(t, s.cfg.stmt("SELECT ", t.rowID, " FROM ", t.name, " WHERE ")).SQL(" LIMIT ").Number(int64(s.cfg.PurgeChunk)).
			Each(ctx, tx, func(scan func(...any) error) error {
				var id string
				err := scan(&id)
				ids = append(ids, id)
				return err
			})
		if err != nil {
			return 0, err
		}
		found += len(ids)
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
func (s *feedStore) old(t *table, q *sqltext.Stmt) *sqltext.Stmt {
	return q.SQL(t.done(), " AND ", t.doneAt(), " < ").Later(t.now(), -s.cfg.Retention)
}

// remove deletes rows, unless they are to be delivered again by now.
func (s *feedStore) remove(ctx context.Context, tx *sql.Tx, t *table, ids []string) error {
	return t.remove(ctx, tx, ids, func(q *sqltext.Stmt) { s.old(t, q) })
}

// walk deletes in the order of the numbers, and goes on where it has ended before. It ends where rows were written so lately that neither
// they nor those behind them can be out of their retention. Rows that wait, that operators have to decide about or that were sent again
// are passed, however many there are: a feed may be paused, and messages may be scheduled for next year.
func (s *feedStore) walk(ctx context.Context, t *table) error {
	s.walking.Lock() // two relays of one process
	defer s.walking.Unlock()
	if time.Since(s.walkedWhole) > walkWhole {
		s.walked, s.walkedWhole = 0, time.Now()
	}
	until, passed := time.Now().Add(purgeTime), 0
	for time.Now().Before(until) && passed < fruitless {
		var ids []string
		seen, young, after := 0, false, s.walked
		q := s.cfg.stmt("SELECT id, CASE WHEN ")
		s.old(t, q).SQL(" THEN 1 ELSE 0 END, CASE WHEN created_at > ").Later(t.now(), -s.cfg.Retention).SQL(" THEN 1 ELSE 0 END FROM ", t.name, " WHERE id > ").Number(after).SQL(
			" ORDER BY ", strings.Join(t.order, ", "), " LIMIT ").Number(int64(s.cfg.PurgeChunk))
		err := q.Each(ctx, s.db, func(scan func(...any) error) error {
			var old bool
			err := scan(&after, &old, &young) // the last one counts
			if seen++; old {
				ids = append(ids, strconv.FormatInt(after, 10))
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := s.do(ctx, func(tx *sql.Tx) error { return s.remove(ctx, tx, t, ids) }); err != nil {
			return err
		}
		if young || seen < s.cfg.PurgeChunk { // these are looked at again: they may be old enough then
			return nil
		}
		if s.walked = after; len(ids) == 0 {
			passed++
		}
	}
	return nil
}

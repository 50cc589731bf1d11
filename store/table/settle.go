package table

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// settleChunk is how many messages one transaction settles at most. A backlog is settled in many: one that took longer than the
// caller has patience would be undone, and tried again with even more to do.
const settleChunk = 2000

// move is how far a mark settles a shard.
type move struct {
	shard *ownedShard
	to    int       // the position
	sent  time.Time // when the oldest attempt beyond it began
	stale bool      // the mark says nothing of that: it is of an earlier lease, or there is a rest
	rows  []string  // to be marked as delivered
	done  []string  // all that are settled
	left  []string  // claimed, and not settled
}

// Settle implements [feeds.Feed].
func (f *feed) Settle(ctx context.Context, marks []feeds.Mark) (lost []int, err error) {
	lost, err = f.settle(ctx, marks, false)
	if err != nil {
		return nil, fmt.Errorf("table: settle: %w", err)
	}
	return lost, nil
}

// Release implements [feeds.Feed].
func (f *feed) Release(ctx context.Context, marks []feeds.Mark) error {
	if _, err := f.settle(ctx, marks, true); err != nil {
		return fmt.Errorf("table: release: %w", err)
	}
	return nil
}

func (f *feed) settle(ctx context.Context, marks []feeds.Mark, release bool) (lost []int, err error) {
	for rest := true; rest; {
		var gone []int
		if gone, rest, err = f.settleSome(ctx, marks, release); err != nil {
			return nil, err
		}
		lost = append(lost, gone...)
		marks = slices.DeleteFunc(slices.Clone(marks), func(m feeds.Mark) bool { return slices.Contains(gone, m.Shard) })
	}
	return lost, nil
}

// settleSome does so in one transaction, and reports whether there is a rest; then nothing is released yet.
func (f *feed) settleSome(ctx context.Context, marks []feeds.Mark, release bool) (lost []int, rest bool, err error) {
	moves, shards, rest, err := f.moves(marks)
	if err != nil || len(shards) == 0 {
		return nil, false, err
	}
	release = release && !rest
	var kept []int
	note := false
	err = f.fenced(ctx, shards, func(tx *sql.Tx, held []int) error {
		kept = held
		held = slices.DeleteFunc(slices.Clone(held), func(s int) bool { return moves[s] == nil })
		note, err = f.write(ctx, tx, held, moves, release)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if note {
		f.noted = time.Now()
	}
	for _, s := range shards {
		m := moves[s]
		switch {
		case m == nil || !slices.Contains(kept, s):
			lost = append(lost, s)
			if m != nil && f.owned[s] == m.shard {
				delete(f.owned, s)
			}
		case f.owned[s] != m.shard: // a balance has seen it go
			lost = append(lost, s)
		default:
			if m.to > m.shard.base {
				m.shard.advance(m.to)
				m.shard.crashes = 0
			}
			if release {
				delete(f.owned, s)
			}
		}
	}
	return lost, rest, nil
}

// moves returns what the marks ask for, up to settleChunk messages, and their shards; a shard that the member does not hold has no
// move.
func (f *feed) moves(marks []feeds.Mark) (moves map[int]*move, shards []int, rest bool, _ error) {
	moves = make(map[int]*move)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range marks {
		if m.Batch != nil && m.Batch.Shard != m.Shard {
			return nil, nil, false, fmt.Errorf("mark of shard %d with a batch of shard %d", m.Shard, m.Batch.Shard)
		}
		if !slices.Contains(shards, m.Shard) {
			shards = append(shards, m.Shard)
		}
		l := f.owned[m.Shard]
		if l == nil {
			continue
		}
		to, stale := l.target(m)
		next := &move{shard: l, to: to, sent: m.Sent, stale: stale}
		if before := moves[m.Shard]; before != nil {
			next.to, next.stale = max(to, before.to), stale || before.stale
			if !before.sent.IsZero() && before.sent.Before(next.sent) {
				next.sent = before.sent
			}
		}
		moves[m.Shard] = next
	}
	budget := settleChunk
	for _, shard := range shards {
		m := moves[shard]
		if m == nil {
			continue
		}
		if most := m.shard.base + budget; m.to > most {
			m.to, m.stale, rest = most, true, true
		}
		budget -= m.to - m.shard.base
		m.left = slices.Collect(maps.Keys(m.shard.claimed))
		for i, h := range m.shard.inFlight {
			switch {
			case m.shard.base+i >= m.to:
				if !h.deferred {
					m.left = append(m.left, h.rowID)
				}
				continue
			case !h.deferred:
				m.rows = append(m.rows, h.rowID)
			}
			m.done = append(m.done, h.rowID)
		}
	}
	return moves, shards, rest, nil
}

// write does what the moves of the shards held ask for. It reports whether the feed's entry was told.
func (f *feed) write(ctx context.Context, tx *sql.Tx, held []int, moves map[int]*move, release bool) (noted bool, err error) {
	var rows, left []string
	var moved []int
	for _, s := range held {
		m := moves[s]
		rows, left = append(rows, m.rows...), append(left, m.left...)
		if len(m.done) == 0 {
			continue
		}
		if moved = append(moved, s); m.shard.crashes > 0 {
			if err := f.progress(ctx, tx, s, m.done); err != nil {
				return false, err
			}
		}
	}
	if err := f.t.publish(ctx, tx, rows); err != nil {
		return false, err
	}
	if release {
		if err := f.t.unclaim(ctx, tx, left); err != nil {
			return false, err
		}
		if err := f.give(ctx, tx, held, moves); err != nil {
			return false, err
		}
	} else if err := f.renew(ctx, tx, held, moves); err != nil {
		return false, err
	}
	return f.note(ctx, tx, len(moved) > 0)
}

// progress clears a shard of suspicion.
func (f *feed) progress(ctx context.Context, tx *sql.Tx, shard int, rows []string) error {
	if err := f.update(ctx, tx, []int{shard}, func(s *sqltext.Stmt) { s.SQL("crashes = 0") }); err != nil {
		return err
	}
	_, err := f.cfg().stmt("DELETE FROM {starts} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(shard)).
		SQL(" AND ").Words("row_id", rows).Exec(ctx, tx)
	return err
}

// note tells operators, once a second, when the feed last made progress. All members write this row: it comes last, so that nobody
// waits long.
func (f *feed) note(ctx context.Context, tx *sql.Tx, progress bool) (bool, error) {
	f.mu.Lock()
	due := progress && time.Since(f.noted) > time.Second
	f.mu.Unlock()
	if !due {
		return false, nil
	}
	_, err := f.cfg().stmt("UPDATE {feeds} SET settled_at = {now} WHERE feed = ").Word(f.name).Exec(ctx, tx)
	return err == nil, err
}

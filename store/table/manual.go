package table

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

const (
	// manualEvery is how often a member looks for rows that operators have changed by hand.
	manualEvery = 2 * time.Second
	// manualPage is how many dead rows of a shard it looks at then.
	manualPage = 100
)

// said is what a row says of itself.
type said string

const (
	saidNothing   said = "" // it is gone
	saidPending   said = "pending"
	saidPublished said = "published"
	saidElse      said = "else"
)

// applyManualChanges acts on what operators have written into the table itself, where they know their way: a dead message whose row waits again is
// sent again, and one whose row is gone, or says that it was delivered, is forgotten. Either way nothing waits for it any more.
// What is tried again by itself is held against its row when it is due.
func (f *feed) applyManualChanges(ctx context.Context, shards []int) error {
	f.mu.Lock()
	due := time.Since(f.manualChecked) > manualEvery
	if due {
		f.manualChecked = time.Now()
	}
	f.mu.Unlock()
	if !due {
		return nil
	}
	dead, err := f.deadRows(ctx, shards)
	if err != nil {
		return err
	}
	changed, _, err := f.changedByHand(ctx, f.store.db, dead)
	if err != nil || len(changed) == 0 {
		return err
	}
	return f.fenced(ctx, shards, func(tx *sql.Tx, held []int) error {
		var rowIDs []string
		for _, r := range changed {
			if slices.Contains(held, r.shard) {
				rowIDs = append(rowIDs, r.rowID)
			}
		}
		return f.follow(ctx, tx, rowIDs)
	})
}

// deadRows returns some of what is dead or parked: of each shard what comes behind those of the last time, or the first again.
func (f *feed) deadRows(ctx context.Context, shards []int) ([]deferredRow, error) {
	type branch struct {
		shard  int
		status feeds.Status
	}
	s := f.cfg().stmt()
	for i, shard := range shards {
		for j, status := range []feeds.Status{feeds.StatusDead, feeds.StatusParked} {
			if i+j > 0 {
				s.SQL(" UNION ALL ")
			}
			f.mu.Lock()
			after := int64(-1 << 62)
			if l := f.owned[shard]; l != nil && l.manualFrom[status] != nil {
				after = *l.manualFrom[status]
			}
			f.mu.Unlock()
			s.SQL("(SELECT ", deferredColumns(f.cfg().Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name).SQL(" AND a.status = ").Text(string(status))
			s.SQL(" AND a.shard = ").Number(int64(shard)).SQL(" AND a.seq > ").Number(after).SQL(" ORDER BY a.seq LIMIT ").Number(manualPage).SQL(")")
		}
	}
	rows, err := deferredRows(ctx, f.store.db, s)
	if err != nil {
		return nil, err
	}
	found, last := make(map[branch]int), make(map[branch]int64)
	for _, r := range rows {
		b := branch{r.shard, r.status}
		found[b]++
		last[b] = max(last[b], r.seq)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, shard := range shards {
		l := f.owned[shard]
		if l == nil {
			continue
		}
		l.manualFrom = make(map[feeds.Status]*int64)
		for _, status := range []feeds.Status{feeds.StatusDead, feeds.StatusParked} {
			if b := (branch{shard, status}); found[b] == manualPage {
				at := last[b]
				l.manualFrom[status] = &at
			}
		}
	}
	return rows, nil
}

// changedByHand returns those of the rows that do not say any more what was written about them, and what all of them say.
func (f *feed) changedByHand(ctx context.Context, q sqltext.Querier, rows []deferredRow) (changed []deferredRow, all map[string]said, err error) {
	all = make(map[string]said)
	for part := range slices.Chunk(rows, chunk) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].rowID
		}
		says, err := f.t.says(ctx, q, ids)
		if err != nil {
			return nil, nil, err
		}
		maps.Copy(all, says)
		for _, r := range part {
			switch word := says[r.rowID]; {
			case word == saidElse, word == saidPending && !f.t.tellsDead():
			default:
				changed = append(changed, r)
			}
		}
	}
	return changed, all, nil
}

// follow does what dead rows say now. The caller has locked the leases of their shards.
func (f *feed) follow(ctx context.Context, tx *sql.Tx, rowIDs []string) error {
	for part := range slices.Chunk(rowIDs, chunk) {
		s := f.cfg().stmt("SELECT ", deferredColumns(f.cfg().Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name)
		dead, err := deferredRows(ctx, tx, s.SQL(" AND a.status IN ('dead', 'parked') AND ").Words("a.row_id", part))
		if err != nil {
			return err
		}
		dead, says, err := f.changedByHand(ctx, tx, dead)
		if err != nil {
			return err
		}
		var again, over []string
		var keys []shardKey
		for _, r := range dead {
			if says[r.rowID] == saidPending {
				again = append(again, r.rowID)
				continue
			}
			over = append(over, r.rowID)
			if k := (shardKey{r.shard, r.key}); r.blocks() && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		if err := f.t.again(ctx, tx, f.name, again); err != nil {
			return err
		}
		if err := f.cfg().forget(ctx, tx, f.name, over); err != nil {
			return err
		}
		if _, err := f.t.promote(ctx, tx, f.name, keys); err != nil {
			return err
		}
	}
	return nil
}

// says returns what rows say of themselves. Those that are gone are missing.
func (t *table) says(ctx context.Context, q sqltext.Querier, rowIDs []string) (map[string]said, error) {
	words := make(map[string]said, len(rowIDs))
	if len(rowIDs) == 0 {
		return words, nil
	}
	s := t.cfg.stmt("SELECT ", t.rowID, ", CASE WHEN ", t.wait, " THEN 'pending' WHEN ", t.delivered(), " THEN 'published' ELSE 'else' END FROM ", t.byID)
	err := s.SQL(" WHERE ").Add(idIn(t, rowIDs)).Each(ctx, q, func(scan func(...any) error) error {
		var rowID, word string
		err := scan(&rowID, &word)
		words[rowID] = said(word)
		return err
	})
	return words, err
}

// tellsDead reports whether a dead row can be told from one that waits by its own words.
func (t *table) tellsDead() bool {
	s := &t.layout.State
	return s.Status != "" && !slices.Contains(s.Pending, t.word(condition{status: feeds.StatusDead}))
}

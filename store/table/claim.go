package table

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// claimReserve is how many rows more are looked at in a table where others may have claimed the first.
const claimReserve = 500

// candidate is a row that waits, or that somebody has claimed.
type candidate struct {
	rowID string
	shard int
	key   sql.NullString
}

// claim fills in the rows that wait in a table that was adopted, and marks them as claimed, where it has a word for that, before any of
// them is sent. What somebody else has locked or claimed not long ago is left to them, and so is all that is behind it in the order
// of its key: the worker that was there before may still run.
func (f *feed) claim(ctx context.Context, asks []*ask) error {
	byShard := make(map[int]*ask)
	for _, a := range asks {
		byShard[a.Shard] = a
	}
	var candidates []candidate
	err := f.adopted(asks).Each(ctx, f.store.db, func(scan func(...any) error) error {
		var c candidate
		if err := scan(&c.rowID, &c.shard, &c.key); err != nil {
			return err
		}
		if a := byShard[c.shard]; a != nil && !a.known[c.rowID] {
			candidates = append(candidates, c)
		}
		return nil
	})
	if err != nil || len(candidates) == 0 {
		return err
	}
	err = f.claiming(ctx, shardsOf(asks), func(tx *sql.Tx, held []int) error {
		free, err := f.lockRows(ctx, tx, candidates)
		if err != nil {
			return err
		}
		for _, a := range asks {
			a.rows, a.more = nil, false
		}
		var taken []string
		behind := make(map[string]bool) // keys of which a message is somebody else's
		for _, c := range candidates {
			a := byShard[c.shard]
			ours, locked := free[c.rowID]
			switch {
			case !slices.Contains(held, c.shard) || c.key.Valid && behind[c.key.String]:
			case !locked || !ours && !a.shard.claimed[c.rowID]:
				behind[c.key.String] = c.key.Valid
			case len(a.rows) == a.Limit:
				a.more = true
			default:
				a.rows = append(a.rows, c.rowID)
				taken = append(taken, c.rowID)
			}
		}
		return f.markClaimed(ctx, tx, taken)
	})
	if err != nil || f.t.layout.State.Processing == "" {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range asks {
		for _, id := range a.rows {
			a.shard.claimed[id] = true
		}
	}
	return nil
}

// claiming runs do in a transaction. Only one that changes rows has to know which shards the member still holds.
func (f *feed) claiming(ctx context.Context, shards []int, do func(tx *sql.Tx, held []int) error) error {
	if f.t.layout.State.Processing != "" {
		return f.fenced(ctx, shards, do)
	}
	return f.store.do(ctx, func(tx *sql.Tx) error { return do(tx, shards) })
}

// lockRows locks those of the rows that nobody else has locked, and returns those that are free, or whose claim is too old to
// mean anything.
func (f *feed) lockRows(ctx context.Context, tx *sql.Tx, candidates []candidate) (map[string]bool, error) {
	t, state := f.t, &f.t.layout.State
	ids := make([]string, len(candidates))
	for i, c := range candidates {
		ids[i] = c.rowID
	}
	free := make(map[string]bool, len(ids))
	s := t.cfg.stmt("SELECT ", t.rowID, ", CASE WHEN ")
	if state.Processing != "" && state.ClaimedAt != "" {
		s.SQL(t.isOneOf(state.Status, []string{state.Processing}), " AND ", t.quote(state.ClaimedAt), " > ").Later(t.now(), -f.member.Lease)
		// A claim of the future is one from before the clocks were set back: it would keep its row for an hour.
		s.SQL(" AND ", t.quote(state.ClaimedAt), " < ").Later(t.now(), f.member.Lease)
		if t.signs() {
			s.SQL(" AND (", t.quote(state.ClaimedBy), " IS NULL OR ", t.quote(state.ClaimedBy), " <> ").Text(f.signature()).SQL(")")
		}
	} else {
		s.SQL("1 = 0") // the shard's lease is all there is to go by
	}
	s.SQL(" THEN 0 ELSE 1 END FROM ", t.byID, " WHERE ").Add(idIn(t, ids)).SQL(" AND ", t.wait, " FOR UPDATE SKIP LOCKED")
	err := s.Each(ctx, tx, func(scan func(...any) error) error {
		var id string
		var ours bool
		err := scan(&id, &ours)
		free[id] = ours
		return err
	})
	return free, err
}

func (f *feed) markClaimed(ctx context.Context, tx *sql.Tx, ids []string) error {
	t, state := f.t, &f.t.layout.State
	if state.Processing == "" {
		return nil
	}
	for part := range slices.Chunk(ids, settleChunk) {
		s := t.cfg.stmt("UPDATE ", t.byID, " SET ", t.quote(state.Status), " = ", t.cfg.Dialect.Literal(state.Processing))
		for _, column := range []string{state.ClaimedAt, state.UpdatedAt} {
			if column != "" {
				s.SQL(", ", t.quote(column), " = ", t.now())
			}
		}
		if t.signs() {
			s.SQL(", ", t.quote(state.ClaimedBy), " = ").Text(f.signature())
		}
		if _, err := s.SQL(" WHERE ").Add(idIn(t, part)).Exec(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// unclaim gives rows back that were claimed and not sent.
func (t *table) unclaim(ctx context.Context, tx sqltext.Querier, ids []string) error {
	state := &t.layout.State
	if state.Processing == "" {
		return nil
	}
	set := []string{t.quote(state.Status) + " = " + t.cfg.Dialect.Literal(state.Pending[0])}
	for _, column := range []string{state.ClaimedAt, state.ClaimedBy} {
		if column != "" && t.columns[column].nullable {
			set = append(set, t.quote(column)+" = NULL")
		}
	}
	if state.UpdatedAt != "" {
		set = append(set, t.quote(state.UpdatedAt)+" = "+t.now())
	}
	for part := range slices.Chunk(ids, settleChunk) {
		s := t.cfg.stmt("UPDATE ", t.byID, " SET ", strings.Join(set, ", "), " WHERE ").Add(idIn(t, part))
		if _, err := s.SQL(" AND ", t.isOneOf(state.Status, []string{state.Processing})).Exec(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// signs reports whether a claim can say whose it is.
func (t *table) signs() bool {
	column := t.layout.State.ClaimedBy
	return column != "" && textual(t.columns[column].kind)
}

// signature is what a claim of this member says.
func (f *feed) signature() string {
	if n := f.t.columns[f.t.layout.State.ClaimedBy].length; n > 0 {
		return short(f.id, n)
	}
	return f.id
}

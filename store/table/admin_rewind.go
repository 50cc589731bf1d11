package table

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// Rewind implements [admin.Feeds]. Rows that were delivered wait again, and the owner of their shards has to take them again: what it
// has read lies behind.
func (d *Admin) Rewind(ctx context.Context, by admin.By, name string, to admin.Point) (n int, err error) {
	err = sqltext.Transact(ctx, d.db, func(tx *sql.Tx) error {
		f, err := d.named(ctx, tx, name)
		if err != nil {
			return err
		}
		if err := d.lockLeases(ctx, tx, name, f.shards()); err != nil {
			return err
		}
		reached, target, err := d.reached(ctx, tx, f, to)
		if err != nil {
			return err
		}
		if n, err = d.rewind(ctx, tx, f, reached); err != nil {
			return err
		}
		return d.cfg.own().Note(ctx, tx, by, admin.Entry{Action: "feed rewind", Feed: name, Count: n, Target: target})
	})
	return n, d.failed("rewind", err)
}

// reached is the condition of rows that lie behind a point, and what a record says of it.
func (d *Admin) reached(ctx context.Context, q sqltext.Querier, f *served, to admin.Point) (func(*sqltext.Stmt), map[string]any, error) {
	if f.t.waitsAgain() == "" {
		return nil, nil, &admin.RefusedError{
			Reason: fmt.Sprintf("table %s keeps nothing that was delivered", f.t.label), Remedy: "its producer has to write the messages again",
		}
	}
	if to.ID.IsZero() {
		enqueued := f.t.enqueued()
		if enqueued == "" {
			return nil, nil, &admin.RefusedError{
				Reason: fmt.Sprintf("table %s has no column that says when a message was written", f.t.label), Remedy: "rewind to a message instead",
			}
		}
		return func(s *sqltext.Stmt) { s.SQL(enqueued, " >= ").Number(to.Time.UnixMicro()) }, map[string]any{"time": to.Time}, nil
	}
	rowIDs, err := d.search(ctx, q, f, to.ID)
	if err != nil {
		return nil, nil, err
	}
	records, err := f.t.load(ctx, q, rowIDs)
	if err != nil {
		return nil, nil, err
	}
	var first *record
	for _, r := range records {
		if first == nil || r.seq < first.seq {
			first = &r
		}
	}
	if first == nil {
		return nil, nil, fmt.Errorf("the table does not hold message %s: %w", to.ID, admin.ErrNoMessage)
	}
	return func(s *sqltext.Stmt) { s.SQL(f.t.seq, " >= ").Number(first.seq) }, map[string]any{"id": to.ID.String()}, nil
}

// rewindChunk is how many rows one statement makes wait again.
const rewindChunk = 1000

// rewind makes delivered rows wait again, and frees their shards. Rows are changed by their IDs: to look for them would wait for
// producers.
func (d *Admin) rewind(ctx context.Context, tx *sql.Tx, f *served, reached func(*sqltext.Stmt)) (n int, err error) {
	t, from := f.t, reached
	freed := make(map[int]bool)
	for {
		var rowIDs []string
		var last int64
		s := d.cfg.stmt("SELECT ", t.rowID, ", ", t.shard, ", ", t.seq, " FROM ", t.name).Add(where(func(s *sqltext.Stmt) { s.SQL(t.delivered()) }, reached, from)).Add(filtered(t, &f.only))
		err := s.SQL(" ORDER BY ", strings.Join(t.order, ", "), " LIMIT ").Number(rewindChunk).Each(ctx, tx, func(scan func(...any) error) error {
			var rowID string
			var shard int
			err := scan(&rowID, &shard, &last)
			rowIDs, freed[shard] = append(rowIDs, rowID), true
			return err
		})
		if err != nil {
			return 0, err
		}
		if len(rowIDs) > 0 {
			if _, err := d.cfg.stmt("UPDATE ", t.byID, " SET ", t.waitsAgain(), " WHERE ").Add(idIn(t, rowIDs)).Exec(ctx, tx); err != nil {
				return 0, err
			}
		}
		if n += len(rowIDs); len(rowIDs) < rewindChunk {
			break
		}
		from = func(s *sqltext.Stmt) { s.Add(beyond(t, ">=", last)) }
	}
	if n == 0 {
		return 0, nil
	}
	_, err = d.cfg.stmt("UPDATE {leases} SET token = token + 1, holder = NULL, expires_at = NULL, sent_at = NULL, crashes = 0, changed_at = {now} WHERE feed = ").
		Word(f.name).SQL(" AND ").Numbers("shard", "smallint", slices.Collect(maps.Keys(freed))).Exec(ctx, tx)
	return n, err
}

// delivered is the condition that a row says that it was delivered; such rows may be deleted instead.
func (t *table) delivered() string {
	state := &t.layout.State
	switch {
	case t.published() == "":
		return "1 = 0"
	case state.Status != "":
		return t.isOneOf(state.Status, []string{state.Published})
	}
	return t.quote(state.PublishedAt) + " IS NOT NULL"
}

// waitsAgain is what is set in rows that are to be delivered once more; nothing where these are deleted.
func (t *table) waitsAgain() string {
	s := &t.layout.State
	if t.published() == "" {
		return ""
	}
	var set []string
	if s.Status != "" {
		set = append(set, t.quote(s.Status)+" = "+t.cfg.Dialect.Literal(s.Pending[0]))
	}
	for _, column := range []string{s.PublishedAt, s.ClaimedAt, s.ClaimedBy} {
		if column != "" && t.columns[column].nullable {
			set = append(set, t.quote(column)+" = NULL")
		}
	}
	if s.UpdatedAt != "" {
		set = append(set, t.quote(s.UpdatedAt)+" = "+t.now())
	}
	return strings.Join(set, ", ")
}

// enqueued is when a row was written, in microseconds since 1970; nothing if the table does not say.
func (t *table) enqueued() string {
	c := &t.layout.Columns
	for _, column := range []string{c.CreatedAt, c.OccurredAt} {
		if column != "" {
			return t.micros(column)
		}
	}
	return ""
}

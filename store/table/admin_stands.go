package table

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// stands are two columns: what a row says of itself, not looking at what is deferred, and when it was delivered. Words that are
// neither for rows that wait nor for those that have failed count as delivered: an operator has decided about them.
func (t *table) stands() string {
	s := &t.layout.State
	status := "CASE WHEN " + t.wait + " THEN 'pending'"
	if !t.layout.native && s.Status != "" {
		var words []string
		for _, word := range []string{s.Failed, s.Dead} {
			if word != "" && word != s.Processing && !slices.Contains(s.Pending, word) {
				words = append(words, word)
			}
		}
		if len(words) > 0 {
			status += " WHEN " + t.isOneOf(s.Status, words) + " THEN 'dead'"
		}
	}
	status += " ELSE 'published' END"
	if s.PublishedAt == "" {
		return status + ", NULL"
	}
	delivered := t.quote(s.PublishedAt) + " IS NOT NULL"
	if s.Status != "" {
		delivered = t.isOneOf(s.Status, []string{s.Published})
	}
	return status + ", CASE WHEN " + delivered + " THEN " + t.micros(s.PublishedAt) + " END"
}

// beyond adds the condition that a row lies before or behind a place, so that an index on the column that the order begins with
// can be used.
func beyond(t *table, sign string, seq int64) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		column := t.layout.ID
		if len(t.layout.OrderBy) > 0 {
			column = t.layout.OrderBy[0]
		}
		kind := t.columns[column].kind
		switch {
		case slices.Contains(integers, kind): // as the index has it
			return s.SQL(t.quote(column), " ", sign, " ").Number(seq)
		case !temporal(kind) || t.cfg.Dialect == sqltext.MySQL && t.layout.native:
			return s.SQL(t.seq, " ", sign, " ").Number(seq)
		case t.cfg.Dialect == sqltext.MySQL:
			return s.SQL(t.quote(column), " ", sign, fmt.Sprintf(" from_unixtime(%d.%06d)", seq/1e6, seq%1e6))
		}
		return s.SQL(t.quote(column), " ", sign, " CAST(timestamptz 'epoch' + CAST(").Arg(seq).SQL(" AS bigint) * interval '1 microsecond' AS ", kind, ")")
	}
}

// search returns the rows of a message. IDs that are derived from those of the rows are looked for among what is deferred, and among
// the newest rows for as long as anybody wants to wait.
func (d *Admin) search(ctx context.Context, q sqltext.Querier, f *served, id postrider.ID) ([]string, error) {
	rowIDs, complete, err := f.t.find(ctx, q, id)
	if err != nil || complete || len(rowIDs) > 0 {
		return rowIDs, err
	}
	look := func(st *sqltext.Stmt) (n int, last int64, err error) {
		err = st.Each(ctx, q, func(scan func(...any) error) error {
			var rowID string
			if err := scan(&rowID, &last); err != nil {
				return err
			}
			if n++; f.t.messageID(rowID) == id {
				rowIDs = append(rowIDs, rowID)
			}
			return nil
		})
		return n, last, err
	}
	st := d.cfg.stmt("SELECT row_id, seq FROM {deferred} WHERE feed = ").Word(f.name).SQL(" ORDER BY row_id LIMIT ").Number(searchDeferred)
	_, _, err = look(st)
	deadline, before := time.Now().Add(searchFor), int64(0)
	for err == nil && len(rowIDs) == 0 && time.Now().Before(deadline) {
		st := d.cfg.stmt("SELECT ", f.t.rowID, ", ", f.t.seq, " FROM ", f.t.name)
		if before > 0 {
			st.SQL(" WHERE ").Add(beyond(f.t, "<", before))
		}
		var n int
		if n, before, err = look(st.SQL(" ORDER BY ", f.t.newestFirst(), " LIMIT ").Number(searchStep)); n < searchStep {
			break
		}
	}
	return rowIDs, err
}

// newestFirst is the order against that of delivery.
func (t *table) newestFirst() string { return strings.Join(t.order, " DESC, ") + " DESC" }

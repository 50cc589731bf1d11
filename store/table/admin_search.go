package table

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

const (
	searchFor      = 100 * time.Millisecond // how long the table is searched for one page
	searchStep     = 5000                   // how many rows are looked at in a step
	searchDeferred = 100_000                // how much of what is deferred is searched
	searchTies     = 10_000                 // how many rows of the same place are returned together
	timeSlack      = time.Minute            // by how much order and times may differ
)

// search goes through a table from its newest rows down, step by step, for as long as anybody wants to wait.
type search struct {
	d      *Admin
	q      sqltext.Querier
	f      *served
	filter *admin.Filter
	where  adminWhere
	before int64 // what is left lies before this place, if it is not 0
	// waiting means that all that waits is asked for, in a table of our own: then the index has it, each shard apart.
	waiting bool
}

// newSearch prepares a search. Nothing is possible where the filter's ID is nobody's.
func (d *Admin) newSearch(ctx context.Context, q sqltext.Querier, f *served, filter *admin.Filter, before int64) (*search, bool, error) {
	s := &search{d: d, q: q, f: f, filter: filter, before: before}
	c := &f.t.layout.Columns
	if !filter.ID.IsZero() {
		ids, err := d.search(ctx, q, f, filter.ID)
		if err != nil || len(ids) == 0 {
			return nil, false, err
		}
		s.where.add(func(st *sqltext.Stmt) { st.Add(idIn(f.t, ids)) })
	} else if c.Type != "" && filter.Type != feeds.CanaryType {
		s.where.add(func(st *sqltext.Stmt) { st.SQL(f.t.asText(c.Type), " <> ").Text(feeds.CanaryType) })
	}
	if !f.only.IsEmpty() && filter.ID.IsZero() { // rows of other feeds
		s.where.add(func(st *sqltext.Stmt) { st.SQL("1 = 1").Add(filtered(f.t, &f.only)) })
	}
	s.where = append(s.where, f.contentWhere(filter)...)
	if filter.Key != "" {
		s.where.add(func(st *sqltext.Stmt) { st.SQL(f.t.key, " = ").Text(filter.Key) })
	}
	if at := f.t.enqueued(); at != "" && !filter.Since.IsZero() {
		s.where.add(func(st *sqltext.Stmt) { st.SQL(at, " >= ").Number(filter.Since.UnixMicro()) })
	}
	if at := f.t.enqueued(); at != "" && !filter.Until.IsZero() {
		s.where.add(func(st *sqltext.Stmt) { st.SQL(at, " <= ").Number(filter.Until.UnixMicro()) })
	}
	if slices.Equal(filter.Statuses, []feeds.Status{feeds.StatusPending}) {
		s.where.add(func(st *sqltext.Stmt) { st.SQL(f.t.wait) })
		others := *filter
		others.Feed, others.Statuses = "", nil
		s.waiting = f.t.layout.native && reflect.DeepEqual(others, admin.Filter{})
	}
	return s, true, nil
}

// page returns the newest messages that match.
func (s *search) page(ctx context.Context, limit int) (page admin.LogPage, err error) {
	for deadline := time.Now().Add(searchFor); ; {
		bottom, until, err := s.bottom(ctx)
		if err != nil {
			return page, err
		}
		rows, err := s.step(ctx, bottom, limit-len(page.Items))
		if err != nil {
			return page, err
		}
		found, err := s.d.standings(ctx, s.q, s.f, rows)
		if err != nil {
			return page, err
		}
		for i := range found {
			if s.filter.Matches(&found[i]) {
				page.Items = append(page.Items, loggedOf(&found[i]))
			}
		}
		switch full := len(rows) > 0 && s.before == rows[len(rows)-1].seq; {
		case full && len(page.Items) >= limit:
			page.Next, page.Until = s.before, page.Items[len(page.Items)-1].EnqueuedAt
			return page, nil
		case full: // others were found, but did not match
		case bottom == nil || !s.filter.Since.IsZero() && !until.IsZero() && until.Before(s.filter.Since.Add(-timeSlack)):
			return page, nil
		default:
			s.before = *bottom
		}
		if time.Now().After(deadline) {
			page.Next, page.Until = s.before, until
			return page, nil
		}
	}
}

// bottom is where a step ends: nil means with the table.
func (s *search) bottom(ctx context.Context) (*int64, time.Time, error) {
	t, at := s.f.t, s.f.t.enqueued()
	if at == "" {
		at = "NULL"
	}
	if s.waiting || !s.filter.ID.IsZero() {
		return nil, time.Time{}, nil
	}
	st := s.d.cfg.stmt("SELECT ", t.seq, ", ", at, " FROM ", t.name)
	if s.before > 0 {
		st.SQL(" WHERE ").Add(beyond(t, "<", s.before))
	}
	var place int64
	var enqueued sql.NullInt64
	err := st.SQL(" ORDER BY ", t.newestFirst(), " LIMIT 1 OFFSET ").Number(searchStep-1).Row(ctx, s.q).Scan(&place, &enqueued)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, time.Time{}, nil
	}
	return &place, sqltext.Moment(enqueued), err
}

// step returns up to limit rows that match, down to a place. If there are more, the search goes on before the last of them.
func (s *search) step(ctx context.Context, bottom *int64, limit int) ([]foundRow, error) {
	t := s.f.t
	w := slices.Clone(s.where)
	if s.before > 0 {
		w.add(func(st *sqltext.Stmt) { st.Add(beyond(t, "<", s.before)) })
	}
	if bottom != nil {
		w.add(func(st *sqltext.Stmt) { st.Add(beyond(t, ">=", *bottom)) })
	}
	rows, err := s.rows(ctx, w, limit+1)
	if err != nil || len(rows) <= limit {
		return rows, err
	}
	last := rows[limit-1].seq
	if rows[limit].seq == last { // the whole of that place
		first := slices.IndexFunc(rows, func(r foundRow) bool { return r.seq == last })
		w.add(func(st *sqltext.Stmt) { st.SQL(t.seq, " = ").Number(last) })
		ties, err := s.rows(ctx, w, searchTies)
		if err != nil {
			return nil, err
		}
		rows = append(rows[:first], ties...)
	} else {
		rows = rows[:limit]
	}
	s.before = last
	return rows, nil
}

func (s *search) rows(ctx context.Context, w adminWhere, limit int) (rows []foundRow, err error) {
	st := s.d.cfg.stmt()
	if !s.waiting {
		s.choose(st, w, limit)
	}
	for shard := 0; s.waiting && shard < s.f.t.shards; shard++ {
		if shard > 0 {
			st.SQL(" UNION ALL ")
		}
		in := func(st *sqltext.Stmt) { st.SQL(s.f.t.shard, " = ").Number(int64(shard)) }
		st.SQL("(")
		s.choose(st, append(slices.Clone(w), in), limit)
		st.SQL(")")
	}
	err = st.Each(ctx, s.q, func(scan func(...any) error) error {
		var r foundRow
		var settled sql.NullInt64
		err := scan(&r.rowID, &r.seq, &r.status, &settled)
		r.settled = sqltext.Moment(settled)
		rows = append(rows, r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	slices.SortStableFunc(rows, func(a, b foundRow) int { return cmp.Compare(b.seq, a.seq) })
	return rows[:min(len(rows), limit)], nil
}

// choose selects the newest rows.
func (s *search) choose(st *sqltext.Stmt, w adminWhere, limit int) {
	t := s.f.t
	st.SQL("SELECT ", t.rowID, ", ", t.seq, ", ", t.stands(), " FROM ", t.name).Add(where(w...))
	st.SQL(" ORDER BY ", t.newestFirst(), " LIMIT ").Number(int64(limit))
}

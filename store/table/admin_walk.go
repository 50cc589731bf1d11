package table

import (
	"cmp"
	"context"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// deadLetter is a message that is deferred, and its row.
type deadLetter struct {
	feeds.Deferred
	rowID string
}

// walkPage is about how many messages are looked at a time.
const walkPage = 1000

// walk visits the messages that are deferred and match, in the order of the log or against it, behind a place if there is one. It
// ends when visit returns false.
func (d *Admin) walk(ctx context.Context, q sqltext.Querier, f *served, filter admin.Filter, after *place, newest bool, visit func(*deadLetter) bool) error {
	if f.name == "" || filter.Feed != "" && filter.Feed != f.name {
		return nil
	}
	w, possible, err := d.deferredWhere(ctx, q, f, &filter)
	if err != nil || !possible {
		return err
	}
	for {
		page, more, err := d.deferredPage(ctx, q, f, w, after, newest)
		if err != nil || len(page) == 0 {
			return err
		}
		after = &place{page[len(page)-1].shard, page[len(page)-1].seq}
		if page, err = d.likely(ctx, q, f, &filter, page); err != nil {
			return err
		}
		deadLetters, err := d.withMessages(ctx, q, f, page)
		if err != nil {
			return err
		}
		for i := range deadLetters {
			if filter.Matches(&deadLetters[i].Deferred) && !visit(&deadLetters[i]) {
				return nil
			}
		}
		if !more {
			return nil
		}
	}
}

// likely leaves those rows that can match, so that no others have to be loaded.
func (d *Admin) likely(ctx context.Context, q sqltext.Querier, f *served, filter *admin.Filter, page []deferredRow) ([]deferredRow, error) {
	outside := *filter
	outside.ID, outside.Type, outside.Topic, outside.Tenant, outside.Key = postrider.ID{}, "", "", "", ""
	page = slices.DeleteFunc(page, func(r deferredRow) bool {
		known := r.with(postrider.Message{}, f.name)
		return !outside.Matches(&known)
	})
	w := f.contentWhere(filter)
	if len(w) == 0 || len(page) == 0 {
		return page, nil
	}
	ids := make([]string, len(page))
	for i := range page {
		ids[i] = page[i].rowID
	}
	match := make(map[string]bool)
	err := d.cfg.stmt("SELECT ", f.t.rowID, " FROM ", f.t.byID).Add(where(append(w, func(s *sqltext.Stmt) { s.Add(idIn(f.t, ids)) })...)).
		Each(ctx, q, func(scan func(...any) error) error {
			var rowID string
			err := scan(&rowID)
			match[rowID] = true
			return err
		})
	return slices.DeleteFunc(page, func(r deferredRow) bool { return !match[r.rowID] }), err
}

// deferredPage returns what comes next, and whether there may be more. Each shard is asked by itself, because the index has the shard
// first.
func (d *Admin) deferredPage(ctx context.Context, q sqltext.Querier, f *served, w adminWhere, after *place, newest bool) (page []deferredRow, more bool, err error) {
	each := max(walkPage/f.t.shards, 20)
	order, sign, beyond := " ORDER BY a.seq LIMIT ", 1, ">"
	if newest {
		order, sign, beyond = " ORDER BY a.seq DESC LIMIT ", -1, "<"
	}
	s := d.cfg.stmt()
	for shard := range f.t.shards {
		if shard > 0 {
			s.SQL(" UNION ALL ")
		}
		s.SQL("(SELECT ", deferredColumns(d.cfg.Dialect), " FROM {deferred} a").Add(where(w...)).SQL(" AND a.shard = ").Number(int64(shard))
		if after != nil {
			s.SQL(" AND a.seq ", beyond)
			if sign*cmp.Compare(shard, after.shard) > 0 { // of two in the same place, the shard decides
				s.SQL("=")
			}
			s.SQL(" ").Number(after.seq)
		}
		s.SQL(order).Number(int64(each)).SQL(")")
	}
	page, err = deferredRows(ctx, q, s)
	slices.SortFunc(page, func(a, b deferredRow) int {
		return sign * cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.shard, b.shard))
	})
	got := make([]int, f.t.shards)
	for i := range page {
		if got[page[i].shard]++; got[page[i].shard] == each { // behind this one the shard may have more
			return page[:i+1], true, err
		}
	}
	return page, false, err
}

// withMessages completes rows with their messages. Of one whose row is gone from the table, only the key is known.
func (d *Admin) withMessages(ctx context.Context, q sqltext.Querier, f *served, page []deferredRow) ([]deadLetter, error) {
	deadLetters := make([]deadLetter, 0, len(page))
	for part := range slices.Chunk(page, chunk) {
		ids := make([]string, len(part))
		for i := range part {
			ids[i] = part[i].rowID
		}
		records, err := f.t.load(ctx, q, ids)
		if err != nil {
			return nil, err
		}
		for i := range part {
			m := postrider.Message{Key: part[i].key}
			if r, ok := records[part[i].rowID]; ok {
				m = r.Message
			}
			deadLetters = append(deadLetters, deadLetter{part[i].with(m, f.name), part[i].rowID})
		}
	}
	return deadLetters, nil
}

// deadLettersOf returns what is deferred of certain rows, by row.
func (d *Admin) deadLettersOf(ctx context.Context, q sqltext.Querier, f *served, rowIDs []string) (map[string]deadLetter, error) {
	found := make(map[string]deadLetter, len(rowIDs))
	for part := range slices.Chunk(rowIDs, chunk) {
		s := d.cfg.stmt("SELECT ", deferredColumns(d.cfg.Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name)
		rows, err := deferredRows(ctx, q, s.SQL(" AND ").Words("a.row_id", part))
		if err != nil {
			return nil, err
		}
		deadLetters, err := d.withMessages(ctx, q, f, rows)
		if err != nil {
			return nil, err
		}
		for _, l := range deadLetters {
			found[l.rowID] = l
		}
	}
	return found, nil
}

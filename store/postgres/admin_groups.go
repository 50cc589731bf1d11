package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

const (
	wordsWithin = 3000 // how many of the newest messages are searched for words first
	wordsEnough = 100  // how many of them make a sample
)

// Groups implements [admin.DeadLetters].
func (d *Admin) Groups(ctx context.Context, filter admin.Filter, sample, limit int) (admin.Groups, error) {
	found, all, err := d.sample(ctx, filter, sample)
	if err != nil {
		return admin.Groups{}, fmt.Errorf("postgres: groups: %w", err)
	}
	return admin.Groups{Sampled: len(found), All: all, Groups: admin.GroupErrors(found, limit)}, nil
}

// sample returns up to n messages, and whether these are all.
func (d *Admin) sample(ctx context.Context, filter admin.Filter, n int) (found []feeds.Deferred, all bool, err error) {
	if filter.Error == "" {
		w := deferredWhere(&filter)
		found, err = d.sampled(ctx, newestDeferred(w, n+1), w.args)
		return found[:min(len(found), n)], len(found) <= n, err
	}
	// Words that occur in many errors are found among the newest messages, and rare words by the
	// full-text index: the planner cannot tell which is which. The index's matches are not sorted,
	// because sorting would read all of them.
	others := filter
	others.Error = ""
	w := deferredWhere(&others)
	newest := newestDeferred(w, wordsWithin)
	found, err = d.sampled(ctx, "SELECT d.* FROM ("+newest+") d WHERE "+w.errorHas(filter.Error)+" LIMIT "+w.arg(n), w.args)
	if err != nil || len(found) >= wordsEnough {
		return found, false, err
	}
	w = deferredWhere(&filter)
	found, err = d.sampled(ctx, deferredBriefly+w.String()+" LIMIT "+w.arg(n+1), w.args)
	return found[:min(len(found), n)], len(found) <= n, err
}

const deferredBriefly = "SELECT d.seq, d.feed, d.type, coalesce(d.last_error, '') AS last_error, d.deferred_at, d.status FROM @schema@.deferred d"

// newestDeferred selects the newest messages: first of each feed, in the order of the index, and
// then of all feeds.
func newestDeferred(w *where, most int) string {
	end := " ORDER BY d.seq DESC LIMIT " + w.arg(most)
	each := *w
	each.add("d.feed = f.name")
	return "SELECT d.* FROM " + feedNames + " f CROSS JOIN LATERAL (" + deferredBriefly + each.String() + end + ") d" + end
}

func (d *Admin) sampled(ctx context.Context, sql string, args []any) ([]feeds.Deferred, error) {
	return lookUp(ctx, d, sql, args, func(row pgx.CollectableRow) (feeds.Deferred, error) {
		var one feeds.Deferred
		var status string
		err := row.Scan(&one.Seq, &one.Feed, &one.Type, &one.LastError, &one.DeferredAt, &status)
		one.DeferredAt = one.DeferredAt.UTC()
		return one, err
	})
}

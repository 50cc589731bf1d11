package table

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// actPage is how many messages an act changes in one transaction: relays wait for it. Each has a record of its own.
const actPage = 1000

// Act implements [admin.DeadLetters].
func (d *Admin) Act(ctx context.Context, by admin.By, act admin.Act, filter admin.Filter, limit int) (int, error) {
	if act.From() == nil {
		return 0, fmt.Errorf("table: there is no act %q", act)
	}
	n, err := d.actOnFeeds(ctx, by, act, filter, limit)
	if err != nil || d.inbox == nil || limit > 0 && n >= limit {
		return n, d.failed(string(act), err)
	}
	if limit > 0 {
		limit -= n
	}
	more, err := d.inbox.Act(ctx, by, act, filter, limit)
	return n + more, err
}

// actOnFeeds does something to what the feeds have deferred, page by page.
func (d *Admin) actOnFeeds(ctx context.Context, by admin.By, act admin.Act, filter admin.Filter, limit int) (int, error) {
	from := act.From()
	if len(filter.Statuses) > 0 {
		from = slices.DeleteFunc(from, func(s feeds.Status) bool { return !slices.Contains(filter.Statuses, s) })
	}
	names, err := d.feeds(ctx, d.db)
	if err != nil || len(from) == 0 {
		return 0, err
	}
	chosen, total := filter, 0
	chosen.Statuses = from
	for _, f := range names {
		left := limit - total
		if limit > 0 && left <= 0 {
			break
		}
		n, err := d.actPages(ctx, by, act, f, filter, chosen, max(left, 0))
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// actPages does so to a feed, as often as limit says unless that is 0.
func (d *Admin) actPages(ctx context.Context, by admin.By, act admin.Act, f *served, filter, chosen admin.Filter, limit int) (total int, err error) {
	var after *place
	for {
		most := actPage
		if limit > 0 {
			most = min(most, limit-total)
		}
		var picked []deadLetter
		err := d.walk(ctx, d.db, f, chosen, after, false, func(l *deadLetter) bool {
			picked = append(picked, *l)
			return len(picked) < most
		})
		if err != nil || len(picked) == 0 {
			return total, err
		}
		n, err := d.act(ctx, by, act, f, filter, chosen, picked)
		total += n
		if err != nil || len(picked) < most || limit > 0 && total >= limit {
			return total, err
		}
		last := &picked[len(picked)-1]
		after = &place{last.Shard, last.Seq}
	}
}

// act does something to messages that still are as they were chosen.
func (d *Admin) act(ctx context.Context, by admin.By, act admin.Act, f *served, asked, chosen admin.Filter, picked []deadLetter) (n int, err error) {
	err = d.change(ctx, f.name, picked, func(tx *sql.Tx) error {
		found, err := d.deadLettersOf(ctx, tx, f, rowsOf(picked))
		if err != nil {
			return err
		}
		var deadLetters []deadLetter
		var before []feeds.Deferred
		for i := range picked {
			if l, ok := found[picked[i].rowID]; ok && chosen.Matches(&l.Deferred) {
				deadLetters, before = append(deadLetters, l), append(before, l.Deferred)
			}
		}
		if n = len(deadLetters); n == 0 {
			return nil
		}
		if err := d.do(ctx, tx, f, act, deadLetters); err != nil {
			return err
		}
		e := admin.Entry{Action: string(act), Feed: f.name, Count: n, Target: describeFilter(asked), Before: describe(before)}
		if act != admin.Discard {
			e.After = describe(afterwards(act, before))
		}
		return d.cfg.own().Note(ctx, tx, by, e)
	})
	return n, err
}

func rowsOf(deadLetters []deadLetter) []string {
	rowIDs := make([]string, len(deadLetters))
	for i := range deadLetters {
		rowIDs[i] = deadLetters[i].rowID
	}
	return rowIDs
}

// afterwards is what has become of messages.
func afterwards(act admin.Act, before []feeds.Deferred) []feeds.Deferred {
	after := slices.Clone(before)
	for i := range after {
		switch act {
		case admin.Retry:
			after[i].Status, after[i].Attempts = feeds.StatusRetry, 0
		case admin.Skip:
			after[i].Status = feeds.StatusDead
		case admin.Park:
			after[i].Status = feeds.StatusParked
		case admin.Discard: // they are gone
		}
	}
	return after
}

// actChanges are what acts set.
var actChanges = map[admin.Act]string{
	admin.Retry: "status = 'retry', attempts = 0, available_at = {now}, name = NULL, name_hash = NULL",
	admin.Skip:  "status = 'dead', blocking = 0, available_at = NULL, name = NULL, name_hash = NULL",
	admin.Park:  "status = 'parked', blocking = 0, available_at = NULL, name = NULL, name_hash = NULL",
}

// do changes messages, and has those go on that waited for them. The caller has locked the leases of their shards.
func (d *Admin) do(ctx context.Context, tx *sql.Tx, f *served, act admin.Act, deadLetters []deadLetter) error {
	rowIDs := rowsOf(deadLetters)
	var keys []shardKey
	for i := range deadLetters {
		l := &deadLetters[i]
		if k := (shardKey{l.Shard, l.OrderKey()}); l.Blocking && k.key != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	var err error
	if act == admin.Discard {
		if err = d.cfg.forget(ctx, tx, f.name, rowIDs); err == nil {
			err = f.t.discard(ctx, tx, rowIDs)
		}
	} else {
		err = f.t.changeDeferred(ctx, tx, f.name, rowIDs, actChanges[act])
	}
	if err != nil || act == admin.Retry {
		return err
	}
	_, err = f.t.promote(ctx, tx, f.name, keys)
	return err
}

// discarded is the word of our own table for messages that are never delivered.
const discarded = "discarded"

// discard makes rows never be delivered. A table that has no word for that is told that they are: the records know better.
func (t *table) discard(ctx context.Context, tx *sql.Tx, rowIDs []string) error {
	s := &t.layout.State
	word := cmp.Or(s.Dead, s.Failed)
	if t.layout.native {
		word = discarded
	}
	if t.published() == "" || word == "" || word == s.Processing || slices.Contains(s.Pending, word) {
		return t.publish(ctx, tx, rowIDs)
	}
	set := t.quote(s.Status) + " = " + t.cfg.Dialect.Literal(word)
	if t.layout.native { // so that it is purged
		set += ", " + t.quote(s.PublishedAt) + " = " + t.now()
	}
	if s.UpdatedAt != "" {
		set += ", " + t.quote(s.UpdatedAt) + " = " + t.now()
	}
	for part := range slices.Chunk(rowIDs, chunk) {
		if _, err := t.cfg.stmt("UPDATE ", t.byID, " SET ", set, " WHERE ").Add(idIn(t, part)).Exec(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

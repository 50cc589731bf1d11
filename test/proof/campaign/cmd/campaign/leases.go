package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// lookBack is how many rows of a shard are read again each time, because a crash can undo the last
// rows, and others replace them.
const lookBack = 16

// leases are the known rows of the relays' ledger, by feed and shard.
type leases map[shard]map[int64]record.Lease

type shard struct {
	feed   string
	number int
}

// collectLeases records new and changed rows of the ledger.
func (w *watch) collectLeases(ctx context.Context) {
	_ = w.ask(ctx, func(ctx context.Context, db *pgx.Conn) error { // missed rows are read later, unless they are swept
		if w.leases == nil {
			w.leases = leases{}
		}
		rows, err := w.leases.look(ctx, db)
		for _, l := range rows {
			if err := w.stage.writer.Lease(l); err != nil {
				return err
			}
		}
		return err
	})
}

// look returns the rows that have changed.
func (all leases) look(ctx context.Context, db *pgx.Conn) (changed []record.Lease, err error) {
	var feeds []string
	var shards []int
	var from []int64
	for s, rows := range all {
		last := int64(0)
		for n := range rows {
			last = max(last, n)
		}
		feeds, shards, from = append(feeds, s.feed), append(shards, s.number), append(from, last)
	}
	rows, err := db.Query(ctx, `
		SELECT c.feed, c.shard, r.n, coalesce(r.member::text, ''), r.released, r.at, r.until
		FROM postrider.cursors c
		LEFT JOIN unnest($1::text[], $2::int[], $3::bigint[]) AS w (feed, shard, n) ON w.feed = c.feed AND w.shard = c.shard
		CROSS JOIN LATERAL (
		  SELECT * FROM postrider.checkpoints r
		  WHERE r.feed = c.feed AND r.shard = c.shard AND r.n > least(coalesce(w.n, 0), c.n) - $4) r
		ORDER BY c.feed, c.shard, r.n`, feeds, shards, from, lookBack)
	if err != nil {
		return nil, err
	}
	now := map[shard]map[int64]record.Lease{}
	var l record.Lease
	_, err = pgx.ForEachRow(rows, []any{&l.Feed, &l.Shard, &l.N, &l.Member, &l.Released, &l.At, &l.Until}, func() error {
		s := shard{l.Feed, l.Shard}
		if now[s] == nil {
			now[s] = map[int64]record.Lease{}
		}
		now[s][l.N] = l
		if before, ok := all[s][l.N]; !ok || before != l {
			changed = append(changed, l)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for s, rows := range now { // older rows are not read again
		all[s] = rows
	}
	return changed, nil
}

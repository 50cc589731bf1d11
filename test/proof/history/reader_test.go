package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/test/proof/history"
)

// variant is a way of reading the log. All except the first are wrong in one respect each; they
// show that the history test would detect it.
type variant struct {
	name string

	// drawn is SQL that returns a sequence number assumed to be assigned. Empty: the highest number
	// read so far.
	drawn string
	// sameCycle uses that number as the floor of the next snapshot, without a transaction of our
	// own in between.
	sameCycle bool
	// order is the column that a batch is ordered by. Empty: seq.
	order string
	// positional reads whatever follows the last number read, and ignores snapshots.
	positional bool
	// hasty reads without pauses, in order to use the result of drawn while it is wrong.
	hasty bool
	// keepsCursor continues with the cursor in memory after the server was down.
	keepsCursor bool
}

var right = variant{name: "right"}

const (
	shards     = 4
	shardsText = "4"
	page       = 9
)

// reader reads one shard with small pages and pauses between its statements.
type reader struct {
	variant
	pool   *pgxpool.Pool
	schema string
	shard  int
	cursor readerCursor
	got    func(history.Delivery)
}

type readerCursor struct {
	s1, s2        string
	lo, lo2, last int64
	highest, safe int64
}

// record stores the cursor as the product does, without waiting for the disk. It also has the
// transaction ID of our own that the rule for the floor requires.
func (r *reader) record(ctx context.Context, tx pgx.Tx) error {
	c := r.cursor
	_, err := tx.Exec(ctx, r.in(`INSERT INTO @.reader_cursors (shard, cursor)
		SELECT $1, $2 FROM set_config('synchronous_commit', 'off', true)`), pgx.QueryExecModeExec,
		r.shard, fmt.Sprintf(cursorFormat, c.s1, c.s2, c.lo, c.lo2, c.last, c.highest, c.safe))
	return err
}

// restore returns to the last stored cursor.
func (r *reader) restore(ctx context.Context) error {
	var text string
	err := r.pool.QueryRow(ctx, r.in("SELECT cursor FROM @.reader_cursors WHERE shard = $1 ORDER BY n DESC LIMIT 1"),
		pgx.QueryExecModeExec, r.shard).Scan(&text)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	r.cursor = readerCursor{}
	if text == "" {
		return nil
	}
	c := &r.cursor
	_, err = fmt.Sscanf(text, cursorFormat, &c.s1, &c.s2, &c.lo, &c.lo2, &c.last, &c.highest, &c.safe)
	return err
}

const cursorFormat = "%q %q %d %d %d %d %d"

const columns = "m.seq, m.id, convert_from(m.payload, 'UTF8') AS text"

// firstPage reads the window from s1 to the statement's own snapshot, nextPage continues inside the
// one from s1 to s2.
const (
	firstPage = `
	WITH s AS MATERIALIZED (SELECT pg_current_snapshot() AS now, $2::text::pg_snapshot AS s1)
	SELECT now::text, m.seq, m.id, m.text FROM s LEFT JOIN LATERAL (
	  (SELECT ` + columns + `, m.xid FROM @.messages m
	   WHERE @.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, ` + shardsText + `) = $1 AND m.seq > $3 AND NOT pg_visible_in_snapshot(m.xid, s.s1) ORDER BY m.# LIMIT $4)
	  UNION ALL
	  (SELECT ` + columns + `, m.xid FROM @.messages m
	   WHERE m.xid = ANY (ARRAY(SELECT pg_snapshot_xip(s.s1))) AND @.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, ` + shardsText + `) = $1 AND m.seq <= $3)
	  ORDER BY # LIMIT $4) m ON true`
	nextPage = `
	SELECT $5::text, m.seq, m.id, m.text FROM (
	  SELECT ` + columns + `, m.xid FROM @.messages m
	  WHERE @.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, ` + shardsText + `) = $1 AND m.seq > $6 AND (m.seq > $3 OR m.xid = ANY (ARRAY(SELECT pg_snapshot_xip($2::text::pg_snapshot))))
	    AND NOT pg_visible_in_snapshot(m.xid, $2::text::pg_snapshot) AND pg_visible_in_snapshot(m.xid, $5::text::pg_snapshot)
	  ORDER BY m.seq LIMIT $4) m`
	positionalPage = `
	SELECT ''::text, m.seq, m.id, m.text FROM (
	  SELECT ` + columns + `, m.xid FROM @.messages m WHERE @.shard_of(m.key, m.aggregate_type, m.aggregate_id, m.id, ` + shardsText + `) = $1 AND m.seq > $2 ORDER BY m.seq LIMIT $3) m`
)

// run reads until idle reports that no more messages follow and the shard has been empty for a
// while.
func (r *reader) run(ctx context.Context, idle func() bool) error {
	for empty := 0; empty < 20 && ctx.Err() == nil; {
		n, err := r.cycle(ctx)
		switch {
		case err != nil:
			return err
		case n > 0:
			empty = 0
		case idle():
			empty++
		}
	}
	return ctx.Err()
}

// cycle reads one page in its own transaction.
func (r *reader) cycle(ctx context.Context) (n int, err error) {
	c := &r.cursor
	if c.s1 == "" {
		c.s1 = "1:1:"
	}
	var now string
	record := r.hasty || rand.IntN(2) == 0
	candidate := c.highest
	ask := r.drawn != "" && (!r.hasty || c.safe <= c.highest) // a hasty reader first uses the previous result
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if ask {
			if err := tx.QueryRow(ctx, r.in(r.drawn), pgx.QueryExecModeExec).Scan(&candidate); err != nil {
				return err
			}
		}
		r.pause(ctx, 5)
		if record {
			if err := r.record(ctx, tx); err != nil {
				return err
			}
		}
		r.pause(ctx, 5)
		now, n, err = r.page(ctx, tx)
		r.pause(ctx, 2)
		return err
	})
	if err != nil {
		return n, err
	}
	if r.sameCycle {
		c.safe = candidate
	}
	switch full := n == r.limit(); {
	case r.positional:
	case c.s2 == "" && full:
		c.s2, c.lo2 = now, max(c.lo, c.safe)
	case c.s2 == "":
		c.s1, c.lo = now, max(c.lo, c.safe)
	case !full:
		c.s1, c.lo, c.s2, c.last = c.s2, c.lo2, "", 0
	}
	if record { // a transaction ID of our own was assigned and has ended
		c.safe = candidate
	}
	return n, nil
}

func (r *reader) page(ctx context.Context, tx pgx.Tx) (now string, n int, err error) {
	c := &r.cursor
	limit := r.limit()
	var rows pgx.Rows
	switch {
	case r.positional:
		rows, err = tx.Query(ctx, r.in(positionalPage), pgx.QueryExecModeExec, r.shard, c.last, limit)
	case c.s2 == "":
		rows, err = tx.Query(ctx, r.in(firstPage), pgx.QueryExecModeExec, r.shard, c.s1, c.lo, limit)
	default:
		rows, err = tx.Query(ctx, r.in(nextPage), pgx.QueryExecModeExec, r.shard, c.s1, c.lo, limit, c.s2, c.last)
	}
	if err != nil {
		return "", 0, err
	}
	var seq *int64
	var id *[16]byte
	var payload *string
	_, err = pgx.ForEachRow(rows, []any{&now, &seq, &id, &payload}, func() error {
		if seq == nil {
			return nil
		}
		n++
		c.last, c.highest = *seq, max(c.highest, *seq)
		d := history.Delivery{ID: postrider.ID(*id), Process: "reader"}
		_, err := fmt.Sscanf(*payload, "%s %d", &d.Key, &d.N)
		r.got(d)
		return err
	})
	return now, n, err
}

func (r *reader) limit() int {
	if r.order != "" || r.hasty {
		return 1000 // paging by another column would be a second mistake; and a hasty reader reads no second page
	}
	return page
}

func (r *reader) in(sql string) string {
	order := r.order
	if order == "" {
		order = "seq"
	}
	return strings.NewReplacer("@.", r.schema+".", "#", order).Replace(sql)
}

// pause sometimes waits for up to ms milliseconds: races need time to happen.
func (r *reader) pause(ctx context.Context, ms int) {
	if r.hasty || rand.IntN(3) > 0 {
		return
	}
	timer := time.NewTimer(rand.N(time.Duration(ms) * time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// newReaders returns one reader per shard, and a function that returns what they have read so far,
// in reading order.
func newReaders(t *testing.T, pool *pgxpool.Pool, schema string, v variant) (readers []*reader, deliveries func() []history.Delivery) {
	t.Helper()
	_, err := pool.Exec(t.Context(), "CREATE TABLE "+schema+".reader_cursors (n bigserial, shard int NOT NULL, cursor text NOT NULL)")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all []history.Delivery
	for shard := range shards {
		readers = append(readers, &reader{variant: v, pool: pool, schema: schema, shard: shard, got: func(d history.Delivery) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, d)
		}})
	}
	return readers, func() []history.Delivery {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

package work

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Dump writes the final state of the database: what was committed, what consumers did, and the
// product's report about messages.
func Dump(ctx context.Context, db *pgx.Conn, plan Plan, w *record.Writer) (map[string]record.Tally, error) {
	if err := w.Collect("intents", "effects", "dead", "foreign"); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context, *pgx.Conn, *record.Writer) error{dumpIntents, dumpEffects, dumpDeferred, dumpDiscarded, dumpForeign} {
		if err := part(ctx, db, w); err != nil {
			return nil, err
		}
	}
	tallies := map[string]record.Tally{}
	for _, destination := range plan.Destinations {
		t, err := tally(ctx, db, destination)
		if err != nil {
			return nil, err
		}
		tallies[destination] = t
	}
	return tallies, nil
}

func dumpIntents(ctx context.Context, db *pgx.Conn, w *record.Writer) error {
	rows, err := db.Query(ctx, `SELECT destination, key, seq, id, sum, poison, unnumbered, unordered, at FROM campaign.ledger ORDER BY destination, key, seq`)
	if err != nil {
		return err
	}
	var i record.Intent
	var id pgtype.UUID
	var sum int64
	_, err = pgx.ForEachRow(rows, []any{&i.Destination, &i.Key, &i.Seq, &id, &sum, &i.Poison, &i.Unnumbered, &i.Unordered, &i.At}, func() error {
		i.ID, i.Sum, i.Tenant = id.String(), uint64(sum), Tenant(i.Key)
		return w.Intent(i)
	})
	return err
}

func dumpEffects(ctx context.Context, db *pgx.Conn, w *record.Writer) error {
	rows, err := db.Query(ctx, `SELECT n, consumer, destination, key, seq, id FROM campaign.effects ORDER BY n`)
	if err != nil {
		return err
	}
	var e record.Effect
	var id pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&e.N, &e.Consumer, &e.Destination, &e.Key, &e.Seq, &id}, func() error {
		e.ID = id.String()
		return w.Effect(e)
	})
	return err
}

// dumpDeferred writes what relays have deferred. What a consumer has deferred lacks its effect,
// which the oracle detects.
func dumpDeferred(ctx context.Context, db *pgx.Conn, w *record.Writer) error {
	rows, err := db.Query(ctx, `SELECT id, status FROM postrider.deferred WHERE feed NOT LIKE 'inbox/%' ORDER BY feed, seq`)
	if err != nil {
		return err
	}
	var id pgtype.UUID
	var d record.Dead
	_, err = pgx.ForEachRow(rows, []any{&id, &d.State}, func() error {
		if d.ID = id.String(); d.State != record.StateDead {
			d.State = record.StatePending
		}
		return w.Dead(d)
	})
	return err
}

// dumpDiscarded writes the messages of relays that operators have discarded, according to the audit
// log, which has one entry for each.
func dumpDiscarded(ctx context.Context, db *pgx.Conn, w *record.Writer) error {
	rows, err := db.Query(ctx, `SELECT coalesce(target ->> 'id', before ->> 'id', ''), who FROM postrider.audit WHERE action = 'discard' AND feed NOT LIKE 'inbox/%' ORDER BY n`)
	if err != nil {
		return err
	}
	d := record.Dead{State: record.StateDiscarded}
	_, err = pgx.ForEachRow(rows, []any{&d.ID, &d.Actor}, func() error { return w.Dead(d) })
	return err
}

// dumpForeign writes the messages of other senders, and how often consumers have handled each, or
// made it a dead letter with an error.
func dumpForeign(ctx context.Context, db *pgx.Conn, w *record.Writer) error {
	rows, err := db.Query(ctx, `SELECT f.n, f.destination, f.form, count(e.n) FROM campaign.foreign f LEFT JOIN campaign.foreign_ends e ON e.n = f.n
		GROUP BY f.n ORDER BY f.n`)
	if err != nil {
		return err
	}
	var f record.Foreign
	_, err = pgx.ForEachRow(rows, []any{&f.N, &f.Destination, &f.Form, &f.Ends}, func() error { return w.Foreign(f) })
	return err
}

// tally queries the product for the messages of a destination. It must have sent all messages that
// are neither pending nor held.
func tally(ctx context.Context, db *pgx.Conn, destination string) (t record.Tally, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	err = db.QueryRow(ctx, `SELECT
		  (SELECT count(*) FROM postrider.messages WHERE topic = $1 OR starts_with(topic, $1 || '.'))
		    + (SELECT coalesce(sum(messages), 0)::bigint FROM campaign.reclaimed WHERE destination = $1),
		  (SELECT count(*) FROM postrider.message_status
		   WHERE feed = $1 AND (topic = $1 OR starts_with(topic, $1 || '.')) AND detail = 'pending'),
		  (SELECT count(*) FROM postrider.deferred WHERE feed = $1),
		  (SELECT coalesce(sum(count), 0)::bigint FROM postrider.audit WHERE action = 'discard' AND feed = $1)`, destination,
	).Scan(&t.Inserted, &t.Pending, &t.Parked, &t.Discarded)
	if err != nil {
		return t, fmt.Errorf("counting messages of %s: %w", destination, err)
	}
	t.Sent = t.Inserted - t.Pending - t.Parked - t.Discarded
	return t, nil
}

// Waiting counts the unfinished work.
type Waiting struct {
	Effects  int64 // missing effects
	Deferred int64 // messages that relays or consumers have deferred
	Foreign  int64 // messages of other senders of which consumers have made nothing yet
}

// Done reports whether nothing is pending.
func (w Waiting) Done() bool { return w == Waiting{} }

func (w Waiting) String() string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{w.Effects, "effects are missing"}, {w.Deferred, "messages are deferred"}, {w.Foreign, "foreign messages are not handled"}} {
		if p.n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// Look counts what is pending. Producers must have stopped.
func Look(ctx context.Context, db *pgx.Conn) (w Waiting, err error) {
	err = db.QueryRow(ctx, `SELECT (SELECT count(*) FROM campaign.ledger WHERE NOT poison) - (SELECT count(*) FROM campaign.effects),
		(SELECT count(*) FROM postrider.deferred),
		(SELECT count(*) FROM campaign.foreign f WHERE NOT EXISTS (SELECT FROM campaign.foreign_ends e WHERE e.n = f.n))`,
	).Scan(&w.Effects, &w.Deferred, &w.Foreign)
	return w, err
}

// FirstDeferred describes the first deferred message of each key, at most 20, so that a run that
// ends with some says in which state they are.
func FirstDeferred(ctx context.Context, db *pgx.Conn) ([]string, error) {
	rows, err := db.Query(ctx, `SELECT format('%s %s, shard %s: ', k.feed, k.order_key, k.shard) || string_agg(format(
		    'seq %s %s, blocking %s, attempts %s, available %s, deferred %s, tried %s, name %s, error %s', k.seq, k.status, k.blocking,
		    k.attempts, k.available_at, k.deferred_at, k.tried_at, k.name, k.last_error), '; ' ORDER BY k.seq)
		FROM (SELECT d.*, row_number() OVER (PARTITION BY d.feed, d.shard, d.order_key ORDER BY d.seq) AS nth FROM postrider.deferred d) k
		WHERE k.nth <= 2 GROUP BY k.feed, k.shard, k.order_key LIMIT 20`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Effects counts effects by destination.
func Effects(ctx context.Context, db *pgx.Conn) (map[string]int64, error) {
	rows, err := db.Query(ctx, "SELECT destination, count(*) FROM campaign.effects GROUP BY destination")
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	var destination string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&destination, &n}, func() error {
		counts[destination] = n
		return nil
	})
	return counts, err
}

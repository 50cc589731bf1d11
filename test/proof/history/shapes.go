package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
)

// Shape is a way of writing messages.
type Shape int

// The ways of writing.
const (
	OneByOne Shape = iota // Enqueue, one call per message
	Together              // Enqueue, one call for all messages
	Copy                  // COPY
	Values                // one INSERT of several rows
	Select                // INSERT … SELECT
	Function              // the SQL function, as used from other languages
	Prepared              // two-phase commit
)

// AllShapes lists the ways of writing.
var AllShapes = []Shape{OneByOne, Together, Copy, Values, Select, Function, Prepared}

// Fact is one message according to the truth: the n-th of its key.
type Fact struct {
	ID  postrider.ID
	Key string
	N   int64
}

func (f Fact) payload() string { return fmt.Sprintf("%s %d", f.Key, f.N) }

// Message returns the message that states the fact.
func (f Fact) Message() postrider.Message {
	return postrider.Message{ID: f.ID, Type: "fact", Key: f.Key, Payload: []byte(f.payload())}
}

// insert assigns the next numbers of some keys, under their row locks, and writes the messages and
// facts for them.
func (w *Writers) insert(ctx context.Context, tx pgx.Tx, shape Shape) error {
	facts, err := w.number(ctx, tx)
	if err != nil {
		return err
	}
	w.pause(ctx)
	w.enqueued.Add(int64(len(facts)))
	if err := w.record(ctx, tx, facts); err != nil {
		return err
	}
	switch shape {
	case Together:
		msgs := make([]postrider.Message, len(facts))
		for i, f := range facts {
			msgs[i] = f.Message()
		}
		return w.outbox.Enqueue(ctx, tx, msgs...)
	case Copy:
		_, err := tx.CopyFrom(ctx, pgx.Identifier{w.cfg.Schema, "messages"}, []string{"id", "type", "key", "payload"},
			pgx.CopyFromSlice(len(facts), func(i int) ([]any, error) {
				return []any{[16]byte(facts[i].ID), "fact", facts[i].Key, []byte(facts[i].payload())}, nil
			}))
		return err
	case Values:
		rows := make([]string, len(facts))
		for i, f := range facts {
			rows[i] = fmt.Sprintf("('%s', 'fact', '%s', '%s')", f.ID, f.Key, f.payload())
		}
		return w.exec(ctx, tx, "INSERT INTO @.messages (id, type, key, payload) VALUES "+strings.Join(rows, ", "))
	case Select:
		rows := make([]string, len(facts))
		for i, f := range facts {
			rows[i] = fmt.Sprintf("('%s'::uuid, '%s', %d)", f.ID, f.Key, f.N)
		}
		return w.exec(ctx, tx, `INSERT INTO @.messages (id, type, key, payload)
			SELECT id, 'fact', key, convert_to(key || ' ' || n, 'UTF8')
			FROM (VALUES `+strings.Join(rows, ", ")+`) v (id, key, n)`)
	case Function:
		for _, f := range facts {
			err := w.exec(ctx, tx, fmt.Sprintf(
				"SELECT @.enqueue('fact', payload_bytes => '%s', key => '%s', id => '%s')", f.payload(), f.Key, f.ID))
			if err != nil {
				return err
			}
		}
		return nil
	default:
		for _, f := range facts {
			if err := w.outbox.Enqueue(ctx, tx, f.Message()); err != nil {
				return err
			}
			if rand.IntN(4) == 0 {
				w.pause(ctx)
			}
		}
		return nil
	}
}

// number locks one to three keys, in one order for all writers, and assigns their next numbers.
func (w *Writers) number(ctx context.Context, tx pgx.Tx) ([]Fact, error) {
	keys := make([]string, 1+rand.IntN(3))
	for i := range keys {
		keys[i] = fmt.Sprintf("k%d", 1+rand.IntN(w.plan.Keys))
	}
	slices.Sort(keys)
	var facts []Fact
	for _, key := range slices.Compact(keys) {
		count := 1 + rand.IntN(max(1, w.plan.Bulk/len(keys)))
		var n int64
		err := tx.QueryRow(ctx, w.in("UPDATE @.keys SET n = n + $1 WHERE key = $2 RETURNING n"),
			pgx.QueryExecModeExec, count, key).Scan(&n)
		if err != nil {
			return nil, err
		}
		for i := range count {
			facts = append(facts, Fact{postrider.NewID(), key, n - int64(count) + 1 + int64(i)})
		}
	}
	return facts, nil
}

func (w *Writers) record(ctx context.Context, tx pgx.Tx, facts []Fact) error {
	rows := make([]string, len(facts))
	for i, f := range facts {
		rows[i] = fmt.Sprintf("('%s', '%s', %d)", f.ID, f.Key, f.N)
	}
	return w.exec(ctx, tx, "INSERT INTO @.facts VALUES "+strings.Join(rows, ", "))
}

// prepared writes in a transaction that outlives its session.
func (w *Writers) prepared(ctx context.Context) error {
	name := "postrider_" + postrider.NewID().String()
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after PREPARE there is nothing to roll back
	if err := w.body(ctx, tx, Together); err != nil {
		return err
	}
	if err := w.exec(ctx, tx, "PREPARE TRANSACTION '"+name+"'"); err != nil {
		return err
	}
	if err := tx.Rollback(ctx); err != nil {
		return err
	}
	w.pause(ctx)
	end := "COMMIT PREPARED '"
	if rand.IntN(10) == 0 {
		end = "ROLLBACK PREPARED '"
	}
	_, err = w.pool.Exec(ctx, end+name+"'", pgx.QueryExecModeExec)
	return err
}

func (w *Writers) exec(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Exec(ctx, w.in(sql), pgx.QueryExecModeExec)
	return err
}

// in replaces each @ by the schema.
func (w *Writers) in(sql string) string { return strings.ReplaceAll(sql, "@.", w.cfg.Schema+".") }

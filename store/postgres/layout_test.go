package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// watchOrder makes drawing a number fail in a transaction that has no ID yet.
const watchOrder = `
	CREATE FUNCTION @.watched_number() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
	  IF pg_current_xact_id_if_assigned() IS NULL THEN
	    RAISE EXCEPTION 'number before transaction ID' USING ERRCODE = 'PRT01';
	  END IF;
	  RETURN nextval('@.message_seq');
	END $$;
	ALTER TABLE @.messages ALTER COLUMN seq SET DEFAULT @.watched_number();`

// waysToWrite are all ways in which a producer can write. Each is the first statement of its
// transaction.
var waysToWrite = []struct {
	name  string
	write func(ctx context.Context, h *house, tx pgx.Tx) error
}{
	{"insert", statement("INSERT INTO @.messages (type) VALUES ('t')")},
	{"several rows", statement("INSERT INTO @.messages (type) VALUES ('t'), ('t'), ('t')")},
	{"select", statement("INSERT INTO @.messages (type) SELECT 't' FROM generate_series(1, 3)")},
	{"select in order", statement("INSERT INTO @.messages (type) SELECT g::text FROM generate_series(1, 3) g ORDER BY 1 DESC")},
	{"columns in another order", statement("INSERT INTO @.messages (payload, key, type) VALUES ('', 'k', 't')")},
	{"returning", statement("INSERT INTO @.messages (type) VALUES ('t') RETURNING seq, xid")},
	{"with", statement("WITH m AS (INSERT INTO @.messages (type) VALUES ('t') RETURNING id) SELECT * FROM m")},
	{"enqueue", statement("SELECT @.enqueue('t', 'order', '1', '{}')")},
	{"Enqueue", func(ctx context.Context, h *house, tx pgx.Tx) error {
		msgs, _ := messages(3)
		return h.outbox.Enqueue(ctx, tx, msgs...)
	}},
	{"copy", func(ctx context.Context, h *house, tx pgx.Tx) error {
		_, err := tx.Conn().PgConn().CopyFrom(ctx, strings.NewReader("t\nt\nt\n"), h.in("COPY @.messages (type) FROM STDIN"))
		return err
	}},
}

func statement(sql string) func(context.Context, *house, pgx.Tx) error {
	return func(ctx context.Context, h *house, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, h.in(sql), pgx.QueryExecModeExec)
		return err
	}
}

// TestTransactionIDComesBeforeNumber verifies an invariant of the cursor: a transaction has an ID
// before it draws a number.
func TestTransactionIDComesBeforeNumber(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		h.exec(watchOrder)
		for _, way := range waysToWrite {
			t.Run(way.name, func(t *testing.T) {
				if err := h.write(t.Context(), way.write); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestWrongColumnOrderIsNoticed verifies that the test above can fail.
func TestWrongColumnOrderIsNoticed(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		h.exec(`ALTER TABLE @.messages DROP COLUMN xid CASCADE;
			ALTER TABLE @.messages ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();` + watchOrder)
		for _, way := range waysToWrite {
			t.Run(way.name, func(t *testing.T) {
				if err := h.write(t.Context(), way.write); sqlState(err) != "PRT01" {
					t.Errorf("not noticed: %v", err)
				}
			})
		}
	})
}

func (h *house) write(ctx context.Context, write func(context.Context, *house, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error { return write(ctx, h, tx) })
}

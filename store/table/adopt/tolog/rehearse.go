package tolog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
)

// rehearsed is how many rows a rehearsal copies at most: the newest, which are most like those that will be written.
const rehearsed = 200

// Rehearsal is what would become of the newest rows of the table if they were written now.
type Rehearsal struct {
	Rows int `json:"rows"` // that were tried
	// Stay counts rows beyond the limits of the log. They stay in the table, for its relays.
	Stay int `json:"stay"`
	// Fail counts rows whose writers would fail.
	Fail int    `json:"fail"`
	Row  string `json:"row,omitempty"` // the ID of the first of those that do not go to the log
	Why  string `json:"why,omitempty"` // and the reason
}

// Rehearse copies the newest rows of the table to the log, in a transaction that is rolled back. It changes nothing, and no writer waits
// for it.
func (m *Move) Rehearse(ctx context.Context) (r Rehearsal, err error) {
	t, err := m.inspect(ctx)
	if err != nil {
		return r, err
	}
	err = pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
		for _, statement := range t.rehearse() {
			if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, "SELECT rows, stay, fail, coalesce(row, ''), coalesce(why, '') FROM pg_temp.postrider_rehearse()", pgx.QueryExecModeExec).
			Scan(&r.Rows, &r.Stay, &r.Fail, &r.Row, &r.Why); err != nil {
			return err
		}
		return errRehearsed
	})
	if !errors.Is(err, errRehearsed) {
		return r, fmt.Errorf("tolog: rehearsal with %s: %w", t.Table, explain(err))
	}
	return r, nil
}

// errRehearsed ends the transaction of a rehearsal.
var errRehearsed = errors.New("tolog: only a rehearsal")

// rehearse returns the statements that a rehearsal begins with. The copy is that of the trigger, for rows of a table of its own, without what
// catches its errors and without the mark on the row.
func (t *source) rehearse() []string {
	declare, read := t.readHeaders()
	return []string{
		"SET LOCAL lock_timeout = '2s'",
		"SET LOCAL statement_timeout = '30s'",
		"CREATE TEMPORARY TABLE postrider_rehearsal (LIKE " + t.full() + ") ON COMMIT DROP",
		"CREATE FUNCTION pg_temp.postrider_copy() RETURNS trigger LANGUAGE plpgsql AS $postrider$\n" + declare + "BEGIN\n  " + read + t.insert() +
			"\n  RETURN NULL;\nEND\n$postrider$",
		"CREATE TRIGGER postrider_copy AFTER INSERT ON postrider_rehearsal FOR EACH ROW EXECUTE FUNCTION pg_temp.postrider_copy()",
		`CREATE FUNCTION pg_temp.postrider_rehearse(OUT rows integer, OUT stay integer, OUT fail integer, OUT "row" text, OUT why text)
  LANGUAGE plpgsql
AS $postrider$
DECLARE
  r ` + t.full() + `;
BEGIN
  rows := 0; stay := 0; fail := 0;
  FOR r IN SELECT * FROM ` + t.full() + ` ORDER BY ` + quote(t.ID) + fmt.Sprintf(` DESC LIMIT %d LOOP
    rows := rows + 1;
    BEGIN
      INSERT INTO postrider_rehearsal SELECT r.*;
    EXCEPTION
      WHEN check_violation OR string_data_right_truncation THEN
        stay := stay + 1;
        IF why IS NULL THEN
          "row" := r.%[2]s::text; why := SQLERRM;
        END IF;
      WHEN OTHERS THEN
        IF fail = 0 THEN
          "row" := r.%[2]s::text; why := SQLERRM;
        END IF;
        fail := fail + 1;
    END;
  END LOOP;
END
$postrider$`, rehearsed, quote(t.ID)),
	}
}

// refuse returns why a move must not begin.
func (r *Rehearsal) refuse() error {
	if r.Fail == 0 {
		return nil
	}
	return &admin.RefusedError{
		Reason: fmt.Sprintf("of the newest %d rows %d could not be written any more, such as %s: %s", r.Rows, r.Fail, r.Row, r.Why),
		Remedy: "leave the column out of the layout, or change its values",
	}
}

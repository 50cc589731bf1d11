package tolog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Status is how far a move is.
type Status struct {
	Table string `json:"table"`
	Feed  string `json:"feed"`
	// Installed is set when rows that are written to the table go to the log.
	Installed bool `json:"installed"`
	// Exists and Paused are about the log's feed.
	Exists bool `json:"exists"`
	Paused bool `json:"paused"`
	// Held is how many shards of the log's feed relays hold.
	Held int `json:"held"`
	// Relays is how many relays serve the table.
	Relays int `json:"relays"`
	// Waiting is how many rows of the table are still to be delivered, Blocked how many of them wait behind a dead letter of their
	// key, and Scheduled how many there are besides whose time has not come. Of each no more than a million are counted.
	Waiting   int `json:"waiting"`
	Blocked   int `json:"blocked"`
	Scheduled int `json:"scheduled"`
	// LastInsert is when a process last wrote to the table, since the trigger is there; zero if none has.
	LastInsert time.Time `json:"last_insert,omitzero"`
}

// Moved reports that the log has taken over: there is no row that its messages would have to wait for.
func (s *Status) Moved() bool { return s.Installed && s.Exists && !s.Paused }

// Status returns how far the move is.
func (m *Move) Status(ctx context.Context) (Status, error) {
	t, err := m.inspect(ctx)
	if err != nil {
		return Status{}, err
	}
	return m.status(ctx, t)
}

func (m *Move) status(ctx context.Context, t *source) (Status, error) {
	s := Status{Table: t.Table, Feed: m.cfg.Feed}
	ask := func(what, sql string, args []any, into ...any) error {
		err := m.pool.QueryRow(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(into...)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("tolog: %s: %w", what, explain(err))
		}
		return nil
	}
	if err := ask("trigger", `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::text::regclass AND tgname = $2)`,
		[]any{t.full(), trigger}, &s.Installed); err != nil {
		return s, err
	}
	if err := ask("feed", `SELECT true, f.paused, (SELECT count(*) FROM `+t.log+`.cursors c
		WHERE c.feed = f.name AND c.member IS NOT NULL AND NOT c.released AND c.until > clock_timestamp())
		FROM `+t.log+`.feeds f WHERE f.name = $1`, []any{m.cfg.Feed}, &s.Exists, &s.Paused, &s.Held); err != nil {
		return s, err
	}
	if err := ask("rows that wait", m.count(t), []any{t.label, pendingLimit}, &s.Relays, &s.Waiting, &s.Blocked, &s.Scheduled); err != nil {
		return s, err
	}
	if s.Installed {
		var last *time.Time
		err := ask("sequence", `SELECT CASE WHEN is_called THEN to_timestamp(last_value) END FROM `+t.beside(), nil, &last)
		if err != nil {
			return s, err
		}
		if last != nil {
			s.LastInsert = last.UTC()
		}
	}
	return s, nil
}

const pendingLimit = 1_000_000

// count is the query for what is left in the table. What a relay has deferred, the engine's own table knows better than the row.
func (m *Move) count(t *source) string {
	s := &t.State
	open := t.waits("t.")
	if s.Status != "" {
		words := append([]string{}, s.Pending...)
		for _, word := range []string{s.Processing, s.Failed} {
			if word != "" && word != s.Dead {
				words = append(words, word)
			}
		}
		open = "t." + quote(s.Status) + " IN (" + literals(words) + ")"
	}
	later := "false"
	if name := t.Columns.DeliverAfter; name != "" {
		later = "coalesce(t." + quote(name) + "::timestamptz > clock_timestamp(), false)"
	}
	deferred, feeds, members := m.own("deferred"), m.own("feeds"), m.own("members")
	return `WITH f AS (SELECT feed FROM ` + feeds + ` WHERE table_name = $1),
	deferred AS (SELECT a.* FROM ` + deferred + ` a JOIN f USING (feed)),
	rows AS (SELECT t.` + quote(t.ID) + `::text AS id, ` + later + ` AS later FROM ` + t.full() + ` t WHERE ` + open + ` LIMIT $2),
	states AS (
	  SELECT CASE WHEN a.status IN ('dead', 'parked') THEN 'dead'
	              WHEN a.status = 'scheduled' OR a.status IS NULL AND r.later THEN 'scheduled'
	              WHEN a.status = 'waiting' AND EXISTS (
	                SELECT FROM deferred d WHERE d.order_key = a.order_key AND d.status = 'dead' AND d.blocking <> 0) THEN 'blocked'
	              ELSE 'waiting' END AS state
	  FROM rows r LEFT JOIN deferred a ON a.row_id = r.id)
	SELECT (SELECT count(*) FROM ` + members + ` m JOIN f USING (feed) WHERE m.expires_at > clock_timestamp()),
	       count(*) FILTER (WHERE state IN ('waiting', 'blocked')), count(*) FILTER (WHERE state = 'blocked'),
	       count(*) FILTER (WHERE state = 'scheduled')
	FROM states`
}

// explain says what to do about an error that has a remedy.
func explain(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "42P01", "3F000", "42883": // a table, schema or function that is not there
		return fmt.Errorf("%w (are the tables of both engines laid out? postrider migrate up)", err)
	case "42501":
		return fmt.Errorf("%w (connect as the owner of the table and of the log)", err)
	}
	return err
}

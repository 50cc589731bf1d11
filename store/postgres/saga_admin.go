package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/saga"
)

var (
	_ saga.Admin = (*sagaStore[pgx.Tx])(nil)
	_ saga.Admin = (*sagaStore[*sql.Tx])(nil)
)

// sagaWhere returns a filter as a condition on table sagas, g.
func sagaWhere(f *saga.Filter) *where {
	var w where
	if f.Name != "" {
		w.add("g.name = %s", f.Name)
	}
	if f.ID != "" {
		w.add("g.id = %s", f.ID)
	}
	if len(f.Statuses) > 0 {
		open := true
		places := make([]string, len(f.Statuses))
		for n, s := range f.Statuses {
			places[n] = w.arg(string(s))
			open = open && !s.Finished()
		}
		w.conditions = append(w.conditions, "g.status IN ("+strings.Join(places, ", ")+")")
		if open {
			w.conditions = append(w.conditions, "g.finished IS NULL") // lets the planner use the partial index on open sagas
		}
	}
	if !f.Before.IsZero() {
		w.add("g.started < %s::timestamptz", stamp(f.Before))
	}
	return &w
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// List implements [saga.Admin].
func (s *sagaStore[Tx]) List(ctx context.Context, filter saga.Filter, after *saga.Instance, limit int) ([]saga.Instance, error) {
	w := sagaWhere(&filter)
	if after != nil {
		w.add("(g.started, %s::text, %s::text) < (%s::timestamptz, g.name, g.id)", after.Name, after.ID, stamp(after.Started))
	}
	var doc string
	var found []saga.Instance
	err := s.db.rows(ctx, s.cfg.in(`SELECT json_build_object('name', g.name, 'id', g.id, 'status', g.status, 'version', g.version,
		  'cause', g.cause, 'started', g.started, 'updated', g.updated, 'deadline', g.deadline, 'finished', g.finished)::text
		FROM @schema@.sagas g`+w.String()+` ORDER BY g.started DESC, g.name, g.id LIMIT `+w.arg(int64(limit))+"::bigint"), w.args, []any{&doc},
		func() error {
			i, err := readSaga(&doc)
			if err == nil {
				found = append(found, *i)
			}
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("postgres: list sagas: %w", explain(err))
	}
	return found, nil
}

// Count implements [saga.Admin].
func (s *sagaStore[Tx]) Count(ctx context.Context, filter saga.Filter) (map[saga.Status]int, error) {
	w := sagaWhere(&filter)
	counts := make(map[saga.Status]int)
	var status string
	var n int64
	err := s.db.rows(ctx, s.cfg.in("SELECT g.status, count(*) FROM @schema@.sagas g"+w.String()+" GROUP BY 1"), w.args, []any{&status, &n},
		func() error {
			counts[saga.Status(status)] = int(n)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("postgres: count sagas: %w", explain(err))
	}
	return counts, nil
}

// Show implements [saga.Admin].
func (s *sagaStore[Tx]) Show(ctx context.Context, name, id string) (*saga.Instance, error) {
	var doc *string
	err := s.db.row(ctx, s.cfg.in("SELECT @schema@.saga_doc($1, $2)"), []any{name, id}, &doc)
	if err != nil {
		return nil, fmt.Errorf("postgres: show saga: %w", explain(err))
	}
	return readSaga(doc)
}

// Act implements [saga.Admin].
func (s *sagaStore[Tx]) Act(ctx context.Context, by admin.By, act saga.Act, name, id, step string) (bool, error) {
	if act.From() == nil {
		return false, fmt.Errorf("postgres: there is no act %q", act)
	}
	var done *bool
	err := s.db.row(ctx, s.cfg.in("SELECT @schema@.act_on_saga($1, $2, $3, $4, $5, $6)"),
		[]any{by.Who, by.Why, string(act), name, id, step}, &done)
	if err != nil {
		return false, fmt.Errorf("postgres: %s saga: %w", act, explain(err))
	}
	if done == nil {
		return false, saga.ErrNotFound
	}
	return *done, nil
}

// sagaSweep is how many sagas one statement removes, and sagaSweeps how many statements Maintain
// runs.
const (
	sagaSweep  = 1000
	sagaSweeps = 10
)

// Maintain implements [saga.Maintainer].
func (s *sagaStore[Tx]) Maintain(ctx context.Context, keep time.Duration, known saga.Known) ([]saga.Stranger, error) {
	names, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	for range sagaSweeps {
		if keep <= 0 {
			break
		}
		n, err := s.db.exec(ctx, s.cfg.in(`DELETE FROM @schema@.sagas g USING (
			  SELECT o.name, o.id FROM @schema@.sagas o
			  WHERE o.finished < clock_timestamp() - make_interval(secs => $1::float8) AND o.name IN (SELECT json_object_keys($2::json))
			  ORDER BY o.finished LIMIT 1000 FOR UPDATE SKIP LOCKED) old
			WHERE g.name = old.name AND g.id = old.id`), keep.Seconds(), string(names))
		if err != nil {
			return nil, fmt.Errorf("postgres: sweep sagas: %w", explain(err))
		}
		if n < sagaSweep {
			break
		}
	}
	var strangers []saga.Stranger
	var g saga.Stranger
	err = s.db.rows(ctx, s.cfg.in(`SELECT s.saga, s.id, s.step FROM json_each($1::json) k CROSS JOIN LATERAL (
		  SELECT * FROM @schema@.saga_steps s WHERE s.saga = k.key AND s.due <= now() AND NOT jsonb_exists(k.value::jsonb, s.step)
		  ORDER BY s.due LIMIT 10) s ORDER BY s.due LIMIT 10`), []any{string(names)}, []any{&g.Name, &g.ID, &g.Step},
		func() error {
			strangers = append(strangers, g)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("postgres: unknown steps of sagas: %w", explain(err))
	}
	return strangers, nil
}

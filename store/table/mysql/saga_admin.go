package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

var _ saga.Admin = (*sagaStore)(nil)

// sagaWhere adds a filter.
func sagaWhere(f *saga.Filter) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		s.SQL(" WHERE TRUE")
		if f.Name != "" {
			s.SQL(" AND name = ").Word(f.Name)
		}
		if f.ID != "" {
			s.SQL(" AND id = ").Word(f.ID)
		}
		if len(f.Statuses) > 0 {
			texts := make([]string, len(f.Statuses))
			for n, status := range f.Statuses {
				texts[n] = string(status)
			}
			s.SQL(" AND ").Words("status", texts)
		}
		if !f.Before.IsZero() {
			s.SQL(" AND started < ").Time(f.Before)
		}
		return s
	}
}

// List implements [saga.Admin].
func (s *sagaStore) List(ctx context.Context, filter saga.Filter, after *saga.Instance, limit int) ([]saga.Instance, error) {
	st := s.cfg.stmt("SELECT ", s.cfg.sagaFields(), " FROM {sagas}").Add(sagaWhere(&filter))
	if after != nil {
		st.SQL(" AND started <= ").Time(after.Started).SQL(" AND (started < ").Time(after.Started).SQL(" OR (name, id) > (").
			Word(after.Name).SQL(",").Word(after.ID).SQL("))")
	}
	var found []saga.Instance
	err := st.SQL(" ORDER BY started DESC, name, id LIMIT ").Number(int64(limit)).Each(ctx, s.db, func(scan func(...any) error) error {
		i, err := scanSaga(scan)
		found = append(found, *i)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("mysql: list sagas: %w", sqltext.Explained(err))
	}
	return found, nil
}

// Count implements [saga.Admin].
func (s *sagaStore) Count(ctx context.Context, filter saga.Filter) (map[saga.Status]int, error) {
	counts := make(map[saga.Status]int)
	err := s.cfg.stmt("SELECT status, count(*) FROM {sagas}").Add(sagaWhere(&filter)).SQL(" GROUP BY status").
		Each(ctx, s.db, func(scan func(...any) error) error {
			var status saga.Status
			var n int
			err := scan(&status, &n)
			counts[status] = n
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("mysql: count sagas: %w", sqltext.Explained(err))
	}
	return counts, nil
}

// Show implements [saga.Admin].
func (s *sagaStore) Show(ctx context.Context, name, id string) (*saga.Instance, error) {
	return s.read(ctx, s.db, name, id, "")
}

// Act implements [saga.Admin].
func (s *sagaStore) Act(ctx context.Context, by admin.By, act saga.Act, name, id, step string) (done bool, err error) {
	if act.From() == nil {
		return false, fmt.Errorf("mysql: there is no act %q", act)
	}
	err = s.Do(ctx, func(ctx context.Context, tx *sql.Tx) error {
		i, err := s.Lock(ctx, tx, name, id)
		if err != nil {
			return err
		}
		was := i.Status
		var failed error
		c, ok := act.Apply(i, step, func(step string) bool {
			held, err := s.holdSoon(ctx, tx, name, id, step)
			if err != nil {
				failed = err
			}
			return held
		})
		if done = ok && failed == nil; !done {
			return failed
		}
		if err := s.Save(ctx, tx, i, c); err != nil {
			return err
		}
		e := admin.Entry{
			Action: "saga " + string(act), Count: 1, Target: map[string]any{"saga": name, "id": id},
			Before: map[string]any{"status": string(was)}, After: map[string]any{"status": string(i.Status)},
		}
		if step != "" {
			e.Target["step"] = step
		}
		return s.cfg.own().Note(ctx, tx, by, e)
	})
	return done, err
}

const (
	// sagaSweep is how many sagas are removed in one transaction, and sagaSweeps how many of these there are at a time.
	sagaSweep  = 100
	sagaSweeps = 50
	// maxStrangers is how many steps Maintain reports.
	maxStrangers = 10
)

// Maintain implements [saga.Maintainer].
func (s *sagaStore) Maintain(ctx context.Context, keep time.Duration, known saga.Known) ([]saga.Stranger, error) {
	if len(known) == 0 {
		return nil, nil
	}
	for range sagaSweeps {
		if keep <= 0 {
			break
		}
		n := 0
		err := sqltext.Transact(ctx, s.db, func(tx *sql.Tx) (err error) {
			n, err = s.sweep(ctx, tx, keep, known)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("mysql: sweep sagas: %w", sqltext.Explained(err))
		}
		if n < sagaSweep {
			break
		}
	}
	var strangers []saga.Stranger
	for name, steps := range known {
		err := s.cfg.stmt("SELECT saga, id, step FROM {saga_steps} WHERE saga = ").Word(name).SQL(" AND due <= {now} AND NOT ").Words("step", steps).
			SQL(" ORDER BY due LIMIT ").Number(int64(maxStrangers-len(strangers))).Each(ctx, s.db, func(scan func(...any) error) error {
			var g saga.Stranger
			err := scan(&g.Name, &g.ID, &g.Step)
			strangers = append(strangers, g)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("mysql: unknown steps of sagas: %w", sqltext.Explained(err))
		}
		if len(strangers) == maxStrangers {
			break
		}
	}
	return strangers, nil
}

// sweep removes some sagas that were finished long ago, and returns how many.
func (s *sagaStore) sweep(ctx context.Context, tx *sql.Tx, keep time.Duration, known saga.Known) (int, error) {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	var old [][2]string
	err := s.cfg.stmt("SELECT name, id FROM {sagas}", s.cfg.byIndex("sagas_finished"), " WHERE finished < ").Later("{now}", -keep).SQL(" AND ").Words("name", names).
		SQL(" ORDER BY finished LIMIT ").Number(sagaSweep).SQL(" FOR UPDATE SKIP LOCKED").Each(ctx, tx, func(scan func(...any) error) error {
		var name, id string
		err := scan(&name, &id)
		old = append(old, [2]string{name, id})
		return err
	})
	for _, key := range old {
		if err == nil {
			_, err = s.cfg.stmt("DELETE t FROM {saga_steps} t FORCE INDEX (PRIMARY) WHERE t.saga = ").Word(key[0]).SQL(" AND t.id = ").Word(key[1]).
				Exec(ctx, tx)
		}
		if err == nil {
			_, err = s.cfg.stmt("DELETE FROM {sagas} WHERE name = ").Word(key[0]).SQL(" AND id = ").Word(key[1]).Exec(ctx, tx)
		}
	}
	return len(old), err
}

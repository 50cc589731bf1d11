package classic

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/saga"
)

var _ saga.Admin = (*sagaStore)(nil)

// sagaWhere adds a filter.
func (s *stmt) sagaWhere(f *saga.Filter) *stmt {
	s.sql(" WHERE TRUE")
	if f.Name != "" {
		s.sql(" AND name = ").word(f.Name)
	}
	if f.ID != "" {
		s.sql(" AND id = ").word(f.ID)
	}
	if len(f.Statuses) > 0 {
		texts := make([]string, len(f.Statuses))
		for n, status := range f.Statuses {
			texts[n] = string(status)
		}
		s.sql(" AND ").words("status", texts)
	}
	if !f.Before.IsZero() {
		s.sql(" AND started < ").time(f.Before)
	}
	return s
}

// List implements [saga.Admin].
func (s *sagaStore) List(ctx context.Context, filter saga.Filter, after *saga.Instance, limit int) ([]saga.Instance, error) {
	st := s.cfg.stmt("SELECT ", s.cfg.sagaFields(), " FROM {sagas}").sagaWhere(&filter)
	if after != nil {
		st.sql(" AND started <= ").time(after.Started).sql(" AND (started < ").time(after.Started).sql(" OR (name, id) > (").
			word(after.Name).sql(",").word(after.ID).sql("))")
	}
	var found []saga.Instance
	err := st.sql(" ORDER BY started DESC, name, id LIMIT ").number(int64(limit)).each(ctx, s.db, func(scan func(...any) error) error {
		i, err := scanSaga(scan)
		found = append(found, *i)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("classic: list sagas: %w", explained(err))
	}
	return found, nil
}

// Count implements [saga.Admin].
func (s *sagaStore) Count(ctx context.Context, filter saga.Filter) (map[saga.Status]int, error) {
	counts := make(map[saga.Status]int)
	err := s.cfg.stmt("SELECT status, count(*) FROM {sagas}").sagaWhere(&filter).sql(" GROUP BY status").
		each(ctx, s.db, func(scan func(...any) error) error {
			var status saga.Status
			var n int
			err := scan(&status, &n)
			counts[status] = n
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("classic: count sagas: %w", explained(err))
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
		return false, fmt.Errorf("classic: there is no act %q", act)
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
		return s.cfg.note(ctx, tx, by, e)
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
		err := transact(ctx, s.db, func(tx *sql.Tx) (err error) {
			n, err = s.sweep(ctx, tx, keep, known)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("classic: sweep sagas: %w", explained(err))
		}
		if n < sagaSweep {
			break
		}
	}
	var strangers []saga.Stranger
	for name, steps := range known {
		err := s.cfg.stmt("SELECT saga, id, step FROM {saga_steps} WHERE saga = ").word(name).sql(" AND due <= {now} AND NOT ").words("step", steps).
			sql(" ORDER BY due LIMIT ").number(int64(maxStrangers-len(strangers))).each(ctx, s.db, func(scan func(...any) error) error {
			var g saga.Stranger
			err := scan(&g.Name, &g.ID, &g.Step)
			strangers = append(strangers, g)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("classic: unknown steps of sagas: %w", explained(err))
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
	err := s.cfg.stmt("SELECT name, id FROM {sagas}", s.cfg.byIndex("sagas_finished"), " WHERE finished < ").later("{now}", -keep).sql(" AND ").words("name", names).
		sql(" ORDER BY finished LIMIT ").number(sagaSweep).sql(" FOR UPDATE SKIP LOCKED").each(ctx, tx, func(scan func(...any) error) error {
		var name, id string
		err := scan(&name, &id)
		old = append(old, [2]string{name, id})
		return err
	})
	for _, key := range old {
		if err == nil {
			_, err = s.cfg.stmt("DELETE t FROM {saga_steps} t FORCE INDEX (PRIMARY) WHERE t.saga = ").word(key[0]).sql(" AND t.id = ").word(key[1]).
				exec(ctx, tx)
		}
		if err == nil {
			_, err = s.cfg.stmt("DELETE FROM {sagas} WHERE name = ").word(key[0]).sql(" AND id = ").word(key[1]).exec(ctx, tx)
		}
	}
	return len(old), err
}

package classic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
)

// sagaStore keeps sagas in the application's database, MySQL or MariaDB. It is both the store that runners work on and the operator's
// admin API, and safe for concurrent use.
type sagaStore struct {
	db  *sql.DB
	cfg Config
}

var (
	_ saga.Store[*sql.Tx] = (*sagaStore)(nil)
	_ saga.Maintainer     = (*sagaStore)(nil)
)

// sagaTries is how often a transaction is begun anew that the database has given up for the sake of others.
const sagaTries = 5

// Do implements [saga.Store]. Its transactions are READ COMMITTED.
func (s *sagaStore) Do(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	for n := 1; ; n++ {
		err := s.once(ctx, f)
		if !yielded(err) || n >= sagaTries || !retrying.Pause(ctx, shortly, n) {
			return err
		}
	}
}

func (s *sagaStore) once(ctx context.Context, f func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return fmt.Errorf("classic: saga: begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	within, end := postrider.ForTransaction(ctx)
	defer end(false)
	if err := f(within, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("classic: saga: commit: %w", err)
	}
	end(true)
	return nil
}

// Create implements [saga.Store].
func (s *sagaStore) Create(ctx context.Context, tx *sql.Tx, i *saga.Instance) error {
	now, err := s.cfg.clock(ctx, tx)
	if err != nil {
		return fmt.Errorf("classic: create saga: %w", err)
	}
	i = i.Clone()
	i.Move(now)
	state, err := encodeSaga(i)
	if err != nil {
		return err
	}
	_, err = s.cfg.stmt("INSERT INTO {sagas} (name, id, status, version, cause, data, state, started, updated, deadline) VALUES (").
		word(i.Name).sql(",").word(i.ID).sql(",").text(string(i.Status)).sql(",1,'',").arg([]byte(i.Data)).sql(",").arg(state).sql(",").
		time(now).sql(",").time(now).sql(",").time(i.Deadline).sql(")").exec(ctx, tx)
	if isDuplicate(err) {
		return saga.ErrExists
	}
	if err == nil && len(i.Steps) > 0 {
		st := s.cfg.stmt("INSERT INTO {saga_steps} (saga, id, step, due) VALUES ")
		for n := range i.Steps {
			if n > 0 {
				st.sql(",")
			}
			st.sql("(").word(i.Name).sql(",").word(i.ID).sql(",").word(i.Steps[n].Name).sql(",").time(i.Steps[n].Due).sql(")")
		}
		_, err = st.exec(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("classic: create saga: %w", explained(err))
	}
	return nil
}

// knownSteps adds the condition that a step is one of those of a saga that will be due.
func (s *stmt) knownSteps(name string, steps []string) *stmt {
	return s.sql("saga = ").word(name).sql(" AND due IS NOT NULL AND ").words("step", steps)
}

// Due implements [saga.Store].
func (s *sagaStore) Due(ctx context.Context, known saga.Known) (next time.Duration, ok bool, err error) {
	if len(known) == 0 {
		return 0, false, nil
	}
	st := s.cfg.stmt("SELECT TIMESTAMPDIFF(MICROSECOND, {now}, min(due)) FROM (")
	first := true
	for name, steps := range known {
		if !first {
			st.sql(" UNION ALL ")
		}
		first = false
		st.sql("(SELECT due FROM {saga_steps} WHERE ").knownSteps(name, steps).sql(" ORDER BY due LIMIT 1)")
	}
	var micros sql.NullInt64
	if err := st.sql(") soonest").row(ctx, s.db).Scan(&micros); err != nil {
		return 0, false, fmt.Errorf("classic: due sagas: %w", explained(err))
	}
	// What is due in years need not be known to the second, and must not overflow.
	return min(time.Duration(min(micros.Int64, 1e14))*time.Microsecond, 1e8*time.Second), micros.Valid, nil
}

// Take implements [saga.Store]. Sagas take turns, lest a busy one starves the others.
func (s *sagaStore) Take(ctx context.Context, tx *sql.Tx, known saga.Known) (*saga.Instance, string, error) {
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		var id, step []byte
		// By the index, or the server might lock all that it looks at before it sorts.
		err := s.cfg.stmt("SELECT id, step FROM {saga_steps}", s.cfg.byIndex("saga_steps_due"), " WHERE ").knownSteps(name, known[name]).
			sql(" AND due <= {now} ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED").row(ctx, tx).Scan(&id, &step)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("classic: take saga: %w", explained(err))
		}
		i, err := s.read(ctx, tx, name, string(id), "")
		return i, string(step), err
	}
	return nil, "", nil
}

// Hold implements [saga.Store].
func (s *sagaStore) Hold(ctx context.Context, tx *sql.Tx, name, id, step string) (bool, error) {
	var one int
	err := s.cfg.stmt("SELECT 1 FROM {saga_steps} WHERE saga = ").word(name).sql(" AND id = ").word(id).sql(" AND step = ").word(step).
		sql(" FOR UPDATE SKIP LOCKED").row(ctx, tx).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("classic: hold saga: %w", explained(err))
	}
	return true, nil
}

// holdSoon is Hold for those who have the saga locked. A transaction that ends lets go of the saga first, and of its step a moment later:
// whoever looks between the two would take the step for one that runs, whose holder will see what was written. So it looks again.
func (s *sagaStore) holdSoon(ctx context.Context, tx *sql.Tx, name, id, step string) (held bool, err error) {
	for n := 1; ; n++ {
		held, err = s.Hold(ctx, tx, name, id, step)
		if held || err != nil || n > 7 || !retrying.Pause(ctx, retry.Policy{First: time.Millisecond, Most: time.Second}, n) {
			return held, err
		}
	}
}

// Lock implements [saga.Store].
func (s *sagaStore) Lock(ctx context.Context, tx *sql.Tx, name, id string) (*saga.Instance, error) {
	return s.read(ctx, tx, name, id, " FOR UPDATE")
}

// Try implements [saga.Store]. It also notices that f has kept a deadlock to itself, which has ended the transaction.
func (s *sagaStore) Try(ctx context.Context, tx *sql.Tx, f func() error) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT postrider_saga"); err != nil {
		return fmt.Errorf("classic: saga: %w", err)
	}
	failed := f()
	end := "RELEASE SAVEPOINT postrider_saga"
	if failed != nil {
		end = "ROLLBACK TO SAVEPOINT postrider_saga"
	}
	_, err := tx.ExecContext(ctx, end)
	if err != nil {
		// What comes next would commit by itself. This way it fails.
		_ = tx.Rollback()
	}
	if failed == nil && isNoSavepoint(err) {
		return errEnded
	}
	if failed == nil && err != nil {
		return fmt.Errorf("classic: saga: %w", err)
	}
	return failed
}

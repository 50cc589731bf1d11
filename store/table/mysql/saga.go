package mysql

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
	"github.com/postrider/postrider/store/table/internal/sqltext"
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

// sagaTries is how often a transaction is begun again that the database has given up for the sake of others.
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
		return fmt.Errorf("mysql: saga: begin: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	within, end := postrider.ForTransaction(ctx)
	defer end(false)
	if err := f(within, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("mysql: saga: commit: %w", err)
	}
	end(true)
	return nil
}

// Create implements [saga.Store].
func (s *sagaStore) Create(ctx context.Context, tx *sql.Tx, i *saga.Instance) error {
	now, err := s.cfg.clock(ctx, tx)
	if err != nil {
		return fmt.Errorf("mysql: create saga: %w", err)
	}
	i = i.Clone()
	i.Move(now)
	state, err := encodeSaga(i)
	if err != nil {
		return err
	}
	_, err = s.cfg.stmt("INSERT INTO {sagas} (name, id, status, version, cause, data, state, started, updated, deadline) VALUES (").
		Word(i.Name).SQL(",").Word(i.ID).SQL(",").Text(string(i.Status)).SQL(",1,'',").Arg([]byte(i.Data)).SQL(",").Arg(state).SQL(",").
		Time(now).SQL(",").Time(now).SQL(",").Time(i.Deadline).SQL(")").Exec(ctx, tx)
	if sqltext.IsDuplicate(err) {
		return saga.ErrExists
	}
	if err == nil && len(i.Steps) > 0 {
		st := s.cfg.stmt("INSERT INTO {saga_steps} (saga, id, step, due) VALUES ")
		for n := range i.Steps {
			if n > 0 {
				st.SQL(",")
			}
			st.SQL("(").Word(i.Name).SQL(",").Word(i.ID).SQL(",").Word(i.Steps[n].Name).SQL(",").Time(i.Steps[n].Due).SQL(")")
		}
		_, err = st.Exec(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("mysql: create saga: %w", sqltext.Explained(err))
	}
	return nil
}

// knownSteps adds the condition that a step is one of those of a saga that will be due.
func knownSteps(name string, steps []string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		return s.SQL("saga = ").Word(name).SQL(" AND due IS NOT NULL AND ").Words("step", steps)
	}
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
			st.SQL(" UNION ALL ")
		}
		first = false
		st.SQL("(SELECT due FROM {saga_steps} WHERE ").Add(knownSteps(name, steps)).SQL(" ORDER BY due LIMIT 1)")
	}
	var micros sql.NullInt64
	if err := st.SQL(") soonest").Row(ctx, s.db).Scan(&micros); err != nil {
		return 0, false, fmt.Errorf("mysql: due sagas: %w", sqltext.Explained(err))
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
		err := s.cfg.stmt("SELECT id, step FROM {saga_steps}", s.cfg.byIndex("saga_steps_due"), " WHERE ").Add(knownSteps(name, known[name])).
			SQL(" AND due <= {now} ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED").Row(ctx, tx).Scan(&id, &step)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, "", fmt.Errorf("mysql: take saga: %w", sqltext.Explained(err))
		}
		i, err := s.read(ctx, tx, name, string(id), "")
		return i, string(step), err
	}
	return nil, "", nil
}

// Hold implements [saga.Store].
func (s *sagaStore) Hold(ctx context.Context, tx *sql.Tx, name, id, step string) (bool, error) {
	var one int
	err := s.cfg.stmt("SELECT 1 FROM {saga_steps} WHERE saga = ").Word(name).SQL(" AND id = ").Word(id).SQL(" AND step = ").Word(step).
		SQL(" FOR UPDATE SKIP LOCKED").Row(ctx, tx).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("mysql: hold saga: %w", sqltext.Explained(err))
	}
	return true, nil
}

// holdSoon is Hold for those who have the saga locked. A transaction that ends lets go of the saga first, and of its step a moment later:
// a caller that looks between the two would take the step for one that runs, whose holder will see what was written. So it looks again.
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
		return fmt.Errorf("mysql: saga: %w", err)
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
		return fmt.Errorf("mysql: saga: %w", err)
	}
	return failed
}

package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/saga"
)

// sagaStore stores sagas in the application's database. It implements both the store that runners
// use and the admin API. It is safe for concurrent use.
type sagaStore[Tx any] struct {
	db  database[Tx]
	cfg Config
}

var (
	_ saga.Store[pgx.Tx]  = (*sagaStore[pgx.Tx])(nil)
	_ saga.Store[*sql.Tx] = (*sagaStore[*sql.Tx])(nil)
	_ saga.Maintainer     = (*sagaStore[pgx.Tx])(nil)
)

// sagaTries is how often Do runs a transaction that the database aborts in favour of others.
const sagaTries = 5

// Do implements [saga.Store].
func (s *sagaStore[Tx]) Do(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	var err error
	for range sagaTries {
		if err = s.once(ctx, f); !yielded(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (s *sagaStore[Tx]) once(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	t, err := s.db.begin(ctx)
	if err != nil {
		return fmt.Errorf("postgres: saga: begin: %w", explain(err))
	}
	// Roll back even if ctx has ended, or the pool would lose the connection.
	defer func() { _ = t.rollback(context.WithoutCancel(ctx)) }()
	within, end := postrider.ForTransaction(ctx)
	defer end(false)
	if err := f(within, t.tx); err != nil {
		return err
	}
	if err := t.commit(ctx); err != nil {
		return fmt.Errorf("postgres: saga: commit: %w", explain(err))
	}
	end(true)
	return nil
}

// Create implements [saga.Store].
func (s *sagaStore[Tx]) Create(ctx context.Context, tx Tx, i *saga.Instance) error {
	brief := *i
	brief.Data = nil
	doc, err := json.Marshal(&brief)
	if err != nil {
		return err
	}
	var created bool
	err = s.db.in(tx).row(ctx, s.cfg.in("SELECT @schema@.create_saga($1::json, $2::json)"), []any{string(doc), string(i.Data)}, &created)
	if err != nil {
		return fmt.Errorf("postgres: create saga: %w", explain(err))
	}
	if !created {
		return saga.ErrExists
	}
	return nil
}

// Due implements [saga.Store].
func (s *sagaStore[Tx]) Due(ctx context.Context, known saga.Known) (next time.Duration, ok bool, err error) {
	names, err := json.Marshal(known)
	if err != nil {
		return 0, false, err
	}
	var seconds *float64
	err = s.db.row(ctx, s.cfg.in("SELECT @schema@.saga_due($1::json)"), []any{string(names)}, &seconds)
	if err != nil {
		return 0, false, fmt.Errorf("postgres: due sagas: %w", explain(err))
	}
	if seconds == nil {
		return 0, false, nil
	}
	// A cap avoids overflow; a step that is due in years need not be exact.
	return time.Duration(min(*seconds, 1e8) * float64(time.Second)), true, nil
}

// Take implements [saga.Store].
func (s *sagaStore[Tx]) Take(ctx context.Context, tx Tx, known saga.Known) (*saga.Instance, string, error) {
	names, err := json.Marshal(known)
	if err != nil {
		return nil, "", err
	}
	var step, doc *string
	err = s.db.in(tx).row(ctx, s.cfg.in("SELECT step, doc FROM @schema@.take_saga_step($1::json)"), []any{string(names)}, &step, &doc)
	if err != nil {
		return nil, "", fmt.Errorf("postgres: take saga: %w", explain(err))
	}
	if step == nil {
		return nil, "", nil
	}
	i, err := readSaga(doc)
	return i, *step, err
}

// Hold implements [saga.Store].
func (s *sagaStore[Tx]) Hold(ctx context.Context, tx Tx, name, id, step string) (bool, error) {
	var one int64
	err := s.db.in(tx).row(ctx, s.cfg.in(`SELECT 1::bigint FROM @schema@.saga_steps s WHERE s.saga = $1 AND s.id = $2 AND s.step = $3
		FOR UPDATE SKIP LOCKED`), []any{name, id, step}, &one)
	if errors.Is(err, errNoRow) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("postgres: hold saga: %w", explain(err))
	}
	return true, nil
}

// Lock implements [saga.Store].
func (s *sagaStore[Tx]) Lock(ctx context.Context, tx Tx, name, id string) (*saga.Instance, error) {
	var doc *string
	err := s.db.in(tx).row(ctx, s.cfg.in("SELECT @schema@.lock_saga($1, $2)"), []any{name, id}, &doc)
	if err != nil {
		return nil, fmt.Errorf("postgres: lock saga: %w", explain(err))
	}
	return readSaga(doc)
}

// savedSaga is the first argument of save_saga. Data and payload are separate.
type savedSaga struct {
	Name     string       `json:"name"`
	ID       string       `json:"id"`
	Status   saga.Status  `json:"status"`
	Version  int64        `json:"version"`
	Cause    string       `json:"cause"`
	Finished *time.Time   `json:"finished"`
	Steps    []savedStep  `json:"steps"`
	Wake     []string     `json:"wake"`
	Signal   *savedSignal `json:"signal,omitempty"`
}

// savedStep has all fields of a step: a missing one would become NULL.
type savedStep struct {
	saga.StepState
	Error string `json:"error"`
	Order int    `json:"order"`
	Skip  bool   `json:"skip"`
}

// savedSignal has all fields of a signal.
type savedSignal struct {
	saga.Signal
	Late    bool `json:"late"`
	Repeats int  `json:"repeats"`
}

// Save implements [saga.Store].
func (s *sagaStore[Tx]) Save(ctx context.Context, tx Tx, i *saga.Instance, c saga.Change) error {
	doc := savedSaga{
		Name: i.Name, ID: i.ID, Status: i.Status, Version: i.Version, Cause: i.Cause, Finished: nullTime(i.Finished),
		Steps: []savedStep{}, Wake: append([]string{}, c.Wake...),
	}
	for _, name := range c.Steps {
		st := i.Step(name)
		doc.Steps = append(doc.Steps, savedStep{*st, st.Error, st.Order, st.Skip})
	}
	var data, payload *string
	if c.Data {
		text := string(i.Data)
		data = &text
	}
	for n := range i.Signals {
		if g := i.Signals[n]; g.Name == c.Signal {
			text := string(g.Payload)
			payload = &text
			g.Payload = nil
			doc.Signal = &savedSignal{Signal: g, Late: g.Late, Repeats: g.Repeats}
		}
	}
	encoded, err := json.Marshal(&doc)
	if err != nil {
		return err
	}
	var saved bool
	err = s.db.in(tx).row(ctx, s.cfg.in("SELECT @schema@.save_saga($1::json, $2::json, $3::json)"),
		[]any{string(encoded), data, payload}, &saved)
	if err != nil {
		return fmt.Errorf("postgres: save saga: %w", explain(err))
	}
	if !saved {
		return saga.ErrConflict
	}
	i.Version++
	return nil
}

// Try implements [saga.Store].
func (s *sagaStore[Tx]) Try(ctx context.Context, tx Tx, f func() error) error {
	in := s.db.in(tx)
	if _, err := in.exec(ctx, "SAVEPOINT postrider_saga"); err != nil {
		return fmt.Errorf("postgres: saga: %w", explain(err))
	}
	failed := f()
	if failed != nil && !yielded(failed) {
		// If the rollback fails, the transaction is broken, and its next statement returns an
		// error.
		_, _ = in.exec(ctx, "ROLLBACK TO SAVEPOINT postrider_saga")
	}
	return failed
}

func readSaga(doc *string) (*saga.Instance, error) {
	if doc == nil {
		return nil, saga.ErrNotFound
	}
	i := new(saga.Instance)
	if err := json.Unmarshal([]byte(*doc), i); err != nil {
		return nil, fmt.Errorf("postgres: saga: %w", err)
	}
	return i, nil
}

package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// sagaState is what stands in one column of a saga: all that is read and written together.
type sagaState struct {
	Steps   []saga.StepState `json:"steps"`
	Signals []saga.Signal    `json:"signals,omitempty"`
}

func encodeSaga(i *saga.Instance) ([]byte, error) {
	return json.Marshal(sagaState{i.Steps, i.Signals})
}

// sagaFields are what the head of a saga is read from.
func (c *Config) sagaFields() string {
	m := sqltext.MySQL.Micros
	return "name, id, status, version, cause, " + m("started") + ", " + m("updated") + ", " + m("deadline") + ", " + m("finished")
}

func scanSaga(scan func(...any) error, more ...any) (i *saga.Instance, err error) {
	i = new(saga.Instance)
	var started, updated, deadline, finished sql.NullInt64
	err = scan(append([]any{&i.Name, &i.ID, &i.Status, &i.Version, &i.Cause, &started, &updated, &deadline, &finished}, more...)...)
	i.Started, i.Updated, i.Deadline, i.Finished = sqltext.Moment(started), sqltext.Moment(updated), sqltext.Moment(deadline), sqltext.Moment(finished)
	return i, err
}

// read returns a saga with all that belongs to it. With a lock it is as it is now, at any isolation level.
func (s *sagaStore) read(ctx context.Context, q sqltext.Querier, name, id, lock string) (*saga.Instance, error) {
	var now sql.NullInt64
	var data, doc []byte
	row := s.cfg.stmt("SELECT ", s.cfg.sagaFields(), ", ", sqltext.MySQL.Micros("{now}"), ", data, state FROM {sagas} WHERE name = ").Word(name).
		SQL(" AND id = ").Word(id).SQL(lock).Row(ctx, q)
	i, err := scanSaga(row.Scan, &now, &data, &doc)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, saga.ErrNotFound
	}
	var state sagaState
	if err == nil {
		err = json.Unmarshal(doc, &state)
	}
	if err != nil {
		return nil, fmt.Errorf("mysql: saga: %w", sqltext.Explained(err))
	}
	i.Now, i.Data, i.Steps, i.Signals = sqltext.Moment(now), data, state.Steps, state.Signals
	slices.SortFunc(i.Signals, func(a, b saga.Signal) int { return a.At.Compare(b.At) })
	return i, nil
}

// Save implements [saga.Store].
func (s *sagaStore) Save(ctx context.Context, tx *sql.Tx, i *saga.Instance, c saga.Change) error {
	kept, err := s.Lock(ctx, tx, i.Name, i.ID)
	if errors.Is(err, saga.ErrNotFound) || err == nil && kept.Version != i.Version {
		return saga.ErrConflict
	}
	if err != nil {
		return err
	}
	for _, name := range c.Steps {
		to, from := kept.Step(name), i.Step(name)
		if !to.Due.Equal(from.Due) {
			if err := s.schedule(ctx, tx, i, name, from.Due); err != nil {
				return fmt.Errorf("mysql: save saga: %w", err)
			}
		}
		*to = *from
	}
	for _, name := range c.Wake {
		held, err := s.holdSoon(ctx, tx, i.Name, i.ID, name)
		if err == nil && held {
			kept.Step(name).Due = kept.Now
			err = s.schedule(ctx, tx, i, name, kept.Now)
		}
		if err != nil {
			return fmt.Errorf("mysql: save saga: %w", err)
		}
	}
	if c.Signal != "" {
		same := func(g saga.Signal) bool { return g.Name == c.Signal }
		kept.Signals = append(slices.DeleteFunc(kept.Signals, same), i.Signals[slices.IndexFunc(i.Signals, same)])
	}
	state, err := encodeSaga(kept)
	if err != nil {
		return err
	}
	st := s.cfg.stmt("UPDATE {sagas} SET status = ").Text(string(i.Status)).SQL(", cause = ").Word(i.Cause).SQL(", finished = ").Time(i.Finished).
		SQL(", version = version + 1, updated = {now}, state = ").Arg(state)
	if c.Data {
		st.SQL(", data = ").Arg([]byte(i.Data))
	}
	if _, err := st.SQL(" WHERE name = ").Word(i.Name).SQL(" AND id = ").Word(i.ID).Exec(ctx, tx); err != nil {
		return fmt.Errorf("mysql: save saga: %w", err)
	}
	i.Version++
	return nil
}

// schedule says when a step is due.
func (s *sagaStore) schedule(ctx context.Context, tx *sql.Tx, i *saga.Instance, step string, due time.Time) error {
	_, err := s.cfg.stmt("UPDATE {saga_steps} SET due = ").Time(due).SQL(" WHERE saga = ").Word(i.Name).SQL(" AND id = ").Word(i.ID).
		SQL(" AND step = ").Word(step).Exec(ctx, tx)
	return err
}

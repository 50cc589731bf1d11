package adopt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/test/proof/history"
)

// writers are the writers of the application. Each starts with the old table and can be switched to
// the log.
type writers struct {
	*shop
	size     int
	messages int64
	switched atomic.Int64 // number of writers that write to the log
	told     atomic.Int64 // messages written, committed or not
	running  sync.WaitGroup

	mu    sync.Mutex
	truth []history.Fact
	slow  time.Duration
}

// write starts writers that write about the given number of messages.
func (s *shop) write(size, messages int) *writers {
	w := &writers{shop: s, size: size, messages: int64(messages)}
	for number := range size {
		w.running.Go(func() {
			for w.told.Load() < w.messages && s.t.Context().Err() == nil {
				w.transaction(s.t.Context(), int64(number) >= w.switched.Load())
			}
		})
	}
	return w
}

// transaction writes up to three messages. One in ten is rolled back.
func (w *writers) transaction(ctx context.Context, old bool) {
	var facts []history.Fact
	begin := time.Now()
	err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		keys := make(map[string]bool)
		for range 1 + rand.IntN(3) {
			keys[fmt.Sprintf("k%d", 1+rand.IntN(w.keys))] = true
		}
		sorted := make([]string, 0, len(keys))
		for key := range keys {
			sorted = append(sorted, key)
		}
		slices.Sort(sorted) // a fixed order, to avoid deadlocks
		for _, key := range sorted {
			fact, err := w.tell(ctx, tx, key, old)
			if err != nil {
				return err
			}
			facts = append(facts, fact)
		}
		if rand.IntN(10) == 0 {
			return errRollback
		}
		return nil
	})
	took := time.Since(begin)
	w.told.Add(int64(len(facts)))
	if err != nil && !errors.Is(err, errRollback) && ctx.Err() == nil {
		w.t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = max(w.slow, took)
	if err == nil {
		w.truth = append(w.truth, facts...)
	}
}

// tell writes one message, numbered under the lock of its key, to the old table or to the log.
func (w *writers) tell(ctx context.Context, tx pgx.Tx, key string, old bool) (history.Fact, error) {
	fact := history.Fact{Key: key}
	if err := tx.QueryRow(ctx, "UPDATE keys SET n = n + 1 WHERE key = $1 RETURNING n", key).Scan(&fact.N); err != nil {
		return fact, err
	}
	payload, err := json.Marshal(body{N: fact.N, Of: key, At: time.Now().UnixNano()})
	if err != nil {
		return fact, err
	}
	if old {
		var id int64
		err := tx.QueryRow(ctx, `INSERT INTO outbox_events (aggregate_type, aggregate_id, event_type, payload)
			VALUES ('order', $1, 'order.changed', $2) RETURNING id`, key, string(payload)).Scan(&id)
		fact.ID = table.DerivedID(w.identity, "outbox_events", fmt.Sprint(id))
		return fact, err
	}
	m := postrider.Event("order.changed", postrider.Aggregate{Type: "order", ID: key}, payload)
	fact.ID = m.ID
	return fact, w.db.Outbox().Enqueue(ctx, tx, m)
}

// reach waits until that many messages are written.
func (w *writers) reach(messages int) {
	for w.told.Load() < int64(messages) && w.t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// switchOver switches one writer after the other to the log, between two numbers of written
// messages.
func (w *writers) switchOver(from, to int) {
	for n := range w.size {
		w.reach(from + (to-from)*n/w.size)
		w.switched.Add(1)
	}
}

func (w *writers) wait() { w.running.Wait() }

func (w *writers) committed() []history.Fact {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.truth)
}

// longest returns the duration of the longest transaction.
func (w *writers) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slow
}

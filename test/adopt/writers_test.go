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

// writers are the processes of the application. Each begins with the old table, and can be switched to the log.
type writers struct {
	*shop
	size     int
	messages int64
	switched atomic.Int64 // how many of them write to the log
	told     atomic.Int64 // messages, committed or not
	running  sync.WaitGroup

	mu    sync.Mutex
	truth []history.Fact
	slow  time.Duration
}

// write lets so many processes write about so many messages.
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

// transaction tells up to three facts. One in ten is rolled back.
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
		slices.Sort(sorted) // so that no two wait for each other
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

// reach waits until so many messages were written.
func (w *writers) reach(messages int) {
	for w.told.Load() < int64(messages) && w.t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// switchOver replaces one process after the other by one that writes to the log, while so many messages are written.
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

// longest is the longest time that a transaction took.
func (w *writers) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slow
}

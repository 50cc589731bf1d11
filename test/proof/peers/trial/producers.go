package trial

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/peers/peer"
)

const (
	keys           = 5000 // distinct keys, unless writers lock them
	tangledKeys    = 64
	tangledWriters = 32
	fillBatch      = 500
)

// produce writes a business row and a message in one transaction, as an application does: four
// round trips.
func (s *session) produce(ctx context.Context) error {
	number := s.book.draw()
	err := pgx.BeginFunc(ctx, s.db.producers, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO orders (customer, cents) VALUES ($1, $2)", number%keys, number); err != nil {
			return err
		}
		if s.enqueue == nil {
			return nil
		}
		return s.enqueue(ctx, tx, newMessage(number, number%keys, 0))
	})
	if err == nil {
		s.book.commit(number)
	}
	return err
}

func newMessage(number, key, seq int64) peer.Message {
	return peer.Message{ID: uuid.New(), Key: strconv.FormatInt(key, 10), Payload: newPayload(number, key, seq)}
}

// full has every writer commit as fast as it can.
func (s *session) full(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	return each(s.lab.Writers, func() error {
		for time.Now().Before(end) {
			if err := s.produce(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// even commits messages at an even rate, independent of their duration, as long as a writer is
// free.
func (s *session) even(ctx context.Context, d time.Duration) error {
	start := time.Now()
	total := int64(float64(s.lab.Rate) * d.Seconds())
	interval := time.Second / time.Duration(s.lab.Rate)
	var turn atomic.Int64
	return each(s.lab.Writers, func() error {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			n := turn.Add(1) - 1
			if n >= total {
				return nil
			}
			timer.Reset(time.Until(start.Add(time.Duration(n) * interval)))
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := s.produce(ctx); err != nil {
				return err
			}
		}
	})
}

// fill enqueues many messages in few transactions, without business rows.
func (s *session) fill(ctx context.Context, count int64) error {
	var turn atomic.Int64
	return each(4, func() error {
		for {
			n := count - turn.Add(fillBatch) + fillBatch
			if n <= 0 {
				return nil
			}
			msgs := make([]peer.Message, min(n, fillBatch))
			numbers := make([]int64, len(msgs))
			for i := range msgs {
				numbers[i] = s.book.draw()
				msgs[i] = newMessage(numbers[i], numbers[i]%keys, 0)
			}
			err := pgx.BeginFunc(ctx, s.db.producers, func(tx pgx.Tx) error { return s.enqueue(ctx, tx, msgs...) })
			if err != nil {
				return err
			}
			for _, number := range numbers {
				s.book.commit(number)
			}
		}
	})
}

// tangled writes like a busy application: transactions that lock a key's row and increment it
// before they enqueue, some with an early transaction ID, some slow, some rolled back. The counter
// is the commit order of each key.
func (s *session) tangled(ctx context.Context, d time.Duration) error {
	if _, err := s.db.admin.Exec(ctx, "INSERT INTO accounts SELECT n, 0 FROM generate_series(0, $1 - 1) n", tangledKeys); err != nil {
		return err
	}
	end := time.Now().Add(d)
	return each(tangledWriters, func() error {
		for time.Now().Before(end) {
			if err := s.tangle(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) tangle(ctx context.Context) error {
	number, key := s.book.draw(), rand.Int64N(tangledKeys)
	tx, err := s.db.producers.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no-op after a commit
	if rand.IntN(2) == 0 {
		if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
			return err
		}
		pause(20 * time.Millisecond)
	}
	var seq int64
	if err := tx.QueryRow(ctx, "UPDATE accounts SET seq = seq + 1 WHERE id = $1 RETURNING seq", key).Scan(&seq); err != nil {
		return err
	}
	if err := s.enqueue(ctx, tx, newMessage(number, key, seq)); err != nil {
		return err
	}
	pause(3 * time.Millisecond)
	if rand.IntN(10) == 0 {
		return tx.Rollback(ctx)
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	s.book.commit(number)
	return nil
}

// pause is part of the load: a transaction that does other work meanwhile.
func pause(most time.Duration) { time.Sleep(rand.N(most)) }

// each runs f concurrently count times and returns the first error, after all have ended.
func each(count int, f func() error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
	)
	for range count {
		wg.Go(func() {
			if err := f(); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}

package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// BenchmarkTransactor measures the statement before COMMIT: one row and one message for each
// transaction, 8 at a time, with and without it in turn.
func BenchmarkTransactor(b *testing.B) {
	pool := must(pgxpool.New(b.Context(), pgtest.Env(b, "POSTRIDER_TEST_POSTGRES18")))(b)
	b.Cleanup(pool.Close)
	cfg := pgtest.Schema(b, pool, postgres.Layout{})
	insert := "INSERT INTO " + cfg.Schema + ".orders VALUES ($1)"
	must(pool.Exec(b.Context(), "CREATE TABLE "+cfg.Schema+".orders (id text)"))(b)
	const workers, each = 8, 10
	db := must(postgres.Open(pool, cfg))(b)
	outbox, asking := db.Outbox(), db.Transactor()
	cfg.Transactor.LeaveUncertain = true
	leaving := must(postgres.Open(pool, cfg))(b).Transactor()
	run := func(transactor postrider.Transactor[pgx.Tx]) time.Duration {
		begin := time.Now()
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range each {
					if err := transactor.Do(b.Context(), func(ctx context.Context, tx pgx.Tx) error {
						if _, err := tx.Exec(ctx, insert, "42"); err != nil {
							return err
						}
						return outbox.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil))
					}); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
		return time.Since(begin)
	}
	run(asking)
	run(leaving)
	var asked, left time.Duration
	for b.Loop() {
		asked += run(asking)
		left += run(leaving)
	}
	committed := float64(b.N * workers * each)
	b.ReportMetric(committed/asked.Seconds(), "asked-tx/s")
	b.ReportMetric(committed/left.Seconds(), "uncertain-tx/s")
	b.ReportMetric(left.Seconds()/asked.Seconds(), "ratio")
}

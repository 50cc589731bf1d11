// Package reconcile contains the snippets of docs/reconcile.md.
package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/store/postgres"
)

// Enrollments finds enrollments without a mail.
func Enrollments(pool *pgxpool.Pool) (*reconcile.Reconciler[pgx.Tx], error) {
	//docs:begin find
	db, err := postgres.Open(pool, postgres.Config{})
	//docs:skip
	if err != nil {
		return nil, err
	}
	//docs:resume
	reconciler, err := reconcile.New(db.Reconciliations(), db.Transactor(), db.Outbox(), reconcile.Config{}, reconcile.Job[pgx.Tx]{
		Name:     "enrollments",
		Schedule: reconcile.Every(5 * time.Minute), // or reconcile.Cron("*/5 8-18 * * mon-fri", berlin)
		Window:   24 * time.Hour,                   // look at the rows of the last day …
		Grace:    10 * time.Minute,                 // … but not at those whose message may still be on its way
		Find: func(ctx context.Context, tx pgx.Tx, since, until time.Time, limit int) ([]postrider.Message, error) {
			rows, err := tx.Query(ctx, `SELECT e.id FROM enrollments e
				WHERE e.created_at >= $1 AND e.created_at < $2
				  AND NOT EXISTS (SELECT FROM mails m WHERE m.enrollment = e.id) LIMIT $3`, since, until, limit)
			if err != nil {
				return nil, err
			}
			return pgx.CollectRows(rows, func(row pgx.CollectableRow) (postrider.Message, error) {
				var id int64
				err := row.Scan(&id)
				m := postrider.Event("enrollment.confirmed", postrider.Aggregate{Type: "enrollment", ID: strconv.FormatInt(id, 10)}, id)
				m.DedupKey = fmt.Sprintf("enrollment:%d", id) // the key that was used when the row was written
				return m, err
			})
		},
	})
	//docs:end
	return reconciler, err
}

// Run runs in every process.
func Run(ctx context.Context, reconciler *reconcile.Reconciler[pgx.Tx]) {
	//docs:begin find
	go reconciler.Run(ctx) // in every process: one of them runs a job at a time
	//docs:end
}

func isOrder(m postrider.Message) bool { return strings.HasPrefix(m.Type, "order.") }

// Ready returns the jobs that the package provides.
func Ready(db, billingDB *postgres.DB, publisher reconcile.Holder) []reconcile.Job[pgx.Tx] {
	//docs:begin received
	log := db.SentLog("orders", "reconciler")
	inbox := billingDB.Receipts() // of the consumer's database
	received := reconcile.Job[pgx.Tx]{Name: "received", Check: reconcile.Unreceived(log, inbox, "billing", isOrder)}
	//docs:end

	//docs:begin held
	held := reconcile.Job[pgx.Tx]{Name: "held", Check: reconcile.Unheld(log, publisher, nil)}
	//docs:end
	again := reconcile.Job[pgx.Tx]{
		Name: "again", Check: held.Check,
		//docs:begin again
		Again: reconcile.Again{Max: 3, After: time.Hour},
		//docs:end
	}
	return []reconcile.Job[pgx.Tx]{received, held, again}
}

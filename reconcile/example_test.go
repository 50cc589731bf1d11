package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/store/memory"
)

// enrollment is a business row. Its expected effect is a mail.
type enrollment struct {
	id     string
	at     time.Time
	mailed bool
}

// missingMails returns the Find function of an application: it finds the rows that lack their
// effect.
func missingMails(table []enrollment) reconcile.Find[*memory.Tx] {
	return func(_ context.Context, _ *memory.Tx, since, until time.Time, limit int) ([]postrider.Message, error) {
		var found []postrider.Message
		for _, e := range table {
			if !e.mailed && !e.at.Before(since) && e.at.Before(until) && len(found) < limit {
				m := postrider.Event("enrollment.confirmed", postrider.Aggregate{Type: "enrollment", ID: e.id}, map[string]string{"id": e.id})
				m.DedupKey = "enrollment:" + e.id // as when the row was written
				found = append(found, m)
			}
		}
		return found, nil
	}
}

func Example() {
	ctx := context.Background()
	db := memory.Open(memory.Config{}) // with PostgreSQL: postgres.NewTransactor, postgres.NewOutbox and postgres.NewReconcilers
	table := []enrollment{
		{"1", time.Now().Add(-2 * time.Hour), true},
		{"2", time.Now().Add(-time.Hour), false},
		{"3", time.Now(), false}, // may still be on its way
	}
	reconciler, err := reconcile.New(db.Reconciliations(), db.Transactor(), db.Outbox(),
		reconcile.Config{Holder: "billing-7", Logger: slog.New(slog.DiscardHandler)},
		reconcile.Job[*memory.Tx]{
			Name:     "enrollments",
			Schedule: reconcile.Every(time.Minute),
			Window:   24 * time.Hour,
			Grace:    10 * time.Minute,
			Find:     missingMails(table),
			Again:    reconcile.Again{Max: 3, After: time.Hour},
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	// In a service: go reconciler.Run(ctx)
	for range 2 {
		run, err := reconciler.RunNow(ctx, "enrollments", reconcile.Options{Show: func(m postrider.Message) { fmt.Println("sent", m.DedupKey) }})
		fmt.Println("found", run.Found, "fixed", run.Fixed, err)
	}
	jobs, _ := reconciler.Jobs(ctx)
	fmt.Println(jobs[0].Job, jobs[0].Schedule, "by", jobs[0].Last.Holder, "in total", jobs[0].Total.Fixed)
	for _, s := range reconciler.Stats() {
		fmt.Printf("reconcile_fixed_total{job=%q} %d\n", s.Job, s.Fixed)
	}
	_, err = reconciler.RunNow(ctx, "payments", reconcile.Options{})
	fmt.Println(errors.Is(err, reconcile.ErrNoJob))
	// Output:
	// sent enrollment:2
	// found 1 fixed 1 <nil>
	// found 1 fixed 0 <nil>
	// enrollments every 1m0s by billing-7 in total 1
	// reconcile_fixed_total{job="enrollments"} 1
	// true
}

func ExampleCron() {
	berlin, _ := time.LoadLocation("Europe/Berlin")
	for _, expression := range []string{"*/15 8-18 * * mon-fri", "0 25 * * *"} {
		s, err := reconcile.Cron(expression, berlin)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(s, "→", s.Next(time.Date(2026, 1, 2, 17, 50, 0, 0, time.UTC)).Format(time.RFC3339))
	}
	s, err := reconcile.ParseSchedule("5m", "", "")
	fmt.Println(s, err)
	// Output:
	// */15 8-18 * * mon-fri Europe/Berlin → 2026-01-05T08:00:00+01:00
	// reconcile: cron: hour "25": "25" is not a number from 0 to 23
	// every 5m0s <nil>
}

func ExampleParseKey() {
	key, err := reconcile.ParseKey("enrollment:{course}:{student}")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := map[string]string{"course": "go", "student": "ann"}
	text, err := key.Fill(func(column string) (string, bool) { v, ok := row[column]; return v, ok })
	fmt.Println(text, err, key.Uses("course"), key.Uses("grade"))
	_, err = reconcile.ParseKey("enrollment")
	fmt.Println(err)
	// Output:
	// enrollment:go:ann <nil> true false
	// reconcile: dedup key "enrollment" has no column in braces: all rows would count as one
}

// sentLog is the log of a feed that has delivered two messages. With PostgreSQL, use
// postgres.NewReconcilerLog.
type sentLog []reconcile.Sent

func (l sentLog) Sent(_ context.Context, _, _ time.Time, before int64, _ int) ([]reconcile.Sent, error) {
	if before != 0 {
		return nil, nil
	}
	return l, nil
}

func (l sentLog) Resend(_ context.Context, places []int64, why string) error {
	fmt.Println("resend", places, why)
	return nil
}

// deaf is an inbox that has recorded nothing, and a broker that holds nothing. With PostgreSQL, use
// postgres.NewReceipts; the publishers of NATS and Kafka implement Holder.
type deaf struct{}

func (deaf) Missing(_ context.Context, _ string, ids []postrider.ID) ([]postrider.ID, error) {
	return ids, nil
}

func (deaf) Holds(_ context.Context, _ time.Time, msgs []postrider.Message) ([]int, error) {
	fmt.Println("asked for", len(msgs), "in", msgs[0].Topic)
	return []int{0}, nil
}

func ExampleUnreceived() {
	ctx := context.Background()
	db := memory.Open(memory.Config{})
	store := db.Reconciliations()
	log := sentLog{
		{Message: postrider.Event("order.paid", postrider.Aggregate{Type: "order", ID: "2"}, nil), Place: 12},
		{Message: postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, nil), Place: 11},
	}
	placed := func(m postrider.Message) bool { return m.Type == "order.placed" } // what billing subscribes to
	reconciler, err := reconcile.New(store, db, nil, reconcile.Config{Logger: slog.New(slog.DiscardHandler)},
		reconcile.Job[*memory.Tx]{Name: "received", Check: reconcile.Unreceived(log, deaf{}, "billing", placed)},
		reconcile.Job[*memory.Tx]{Name: "held", Check: reconcile.Unheld(log, deaf{}, nil)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, job := range []string{"received", "received", "held"} { // the second time comes too early
		run, err := reconciler.RunNow(ctx, job, reconcile.Options{})
		fmt.Println(job, "found", run.Found, "fixed", run.Fixed, err)
	}
	_, err = store.Claim(ctx, "held", "somebody", time.Minute, true)
	fmt.Println(err)
	_, err = reconciler.RunNow(ctx, "held", reconcile.Options{})
	var notYet *reconcile.NotYetError
	fmt.Println(errors.As(err, &notYet), errors.Is(err, reconcile.ErrNotYet), err)
	// Output:
	// resend [11] not received by billing
	// received found 1 fixed 1 <nil>
	// received found 1 fixed 0 <nil>
	// asked for 2 in order.paid
	// resend [12] not held by the broker
	// held found 1 fixed 1 <nil>
	// <nil>
	// true true reconcile: job held is being run by somebody
}

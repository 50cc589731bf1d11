// Command admissions is a university's admissions service. An applicant submits documents, pays a
// fee and gets a confirmation. No crash, outage or redelivery on the way loses the application or
// repeats a step.
//
//	admissions migrate    create the tables and the queues
//	admissions serve      the API and the pages
//	admissions work       the workers: verify, payment, mail, or those that are named
//	admissions paydesk    simulates a payment provider, another company
//
// Between them runs "postrider relay --config postrider.yaml". README.md describes the whole flow.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/examples/admissions/paydesk"
	"github.com/postrider/postrider/store/postgres"
)

const usage = "usage: admissions migrate | serve | work [verify] [payment] [mail] | paydesk"

func main() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		slog.Error("admissions ends", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	set, err := settingsFromEnvironment()
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, set.database)
	if err != nil {
		return err
	}
	defer pool.Close()
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		return err
	}
	switch command, names := args[0], args[1:]; command {
	case "migrate":
		return migrate(ctx, pool, db, set)
	case "serve":
		return serve(ctx, pool, db, set)
	case "work":
		return work(ctx, db, set, names)
	case "paydesk":
		desk, err := paydesk.New(pool, paydesk.Config{
			Secret:     set.paymentSecret,
			WebhookURL: set.url + "/webhooks/payments",
			ReturnURL:  set.url + statusPath("{application}"),
		})
		if err != nil {
			return err
		}
		return together(ctx, desk.Run, func(ctx context.Context) error { return listen(ctx, set.paydeskListen, desk) })
	default:
		return fmt.Errorf("there is no command %q; %s", command, usage)
	}
}

package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestSagaRoles verifies that a consumer can run sagas and cannot act as an operator, that an
// operator can act only in ways that are recorded, and that a relay cannot read sagas.
func TestSagaRoles(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	h := newHouse(t, dsn, still)
	consumer := h.as(dsn, "consumer")
	sagas := consumer.db.Sagas()
	nothing := func(context.Context, pgx.Tx, *int) error { return nil }
	fails := func(context.Context, pgx.Tx, *int) error { return errors.New("no") }
	once := retry.Policy{Attempts: 1}
	g := must(saga.New(sagas, "g", saga.Step("a", nothing, fails).RetryUndo(once),
		saga.Wait("b", func(context.Context, pgx.Tx, *int, int) error { return errors.New("no") }, nil).Retry(once)))(t)
	runner := must(saga.NewRunner(saga.Config{Poll: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}, g))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	defer func() {
		stop()
		<-ended
	}()
	if err := sagas.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := g.Start(ctx, tx, "1", 7); err != nil {
			return err
		}
		_, err := g.Signal(ctx, tx, "1", "b", 1)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if i, err := consumer.db.SagaAdmin().Show(ctx, "g", "1"); err == nil && i.Status == saga.Stuck {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%+v, %v", i, err)
		}
	}
	if _, err := sagas.(saga.Maintainer).Maintain(ctx, time.Hour, saga.Known{"g": {"a"}}); err != nil {
		t.Error(err)
	}
	consumer.mustNotBeAllowed("SELECT @.act_on_saga('x', '', 'skip', 'g', '1', '')", "SELECT * FROM @.audit")

	other := func(role string) *house {
		config := consumer.pool.Config()
		config.ConnConfig.RuntimeParams["role"] = h.cfg.Schema + "_" + role
		pool := must(pgxpool.NewWithConfig(ctx, config))(t)
		t.Cleanup(pool.Close)
		return openHouse(t, pool, h.cfg)
	}
	operator := other("operator")
	admins := operator.db.SagaAdmin()
	if i, err := admins.Show(ctx, "g", "1"); err != nil || len(i.Steps) != 2 {
		t.Errorf("%+v, %v", i, err)
	}
	if done, err := admins.Act(ctx, admin.By{Who: "ann"}, saga.ActSkip, "g", "1", ""); err != nil || !done {
		t.Errorf("%v, %v", done, err)
	}
	operator.mustNotBeAllowed(
		"UPDATE @.sagas SET status = 'completed'", "UPDATE @.saga_steps SET skip = true", "DELETE FROM @.sagas",
		"INSERT INTO @.saga_signals VALUES ('g', '1', 'x', '1', now(), false, 0)")
	other("relay").mustNotBeAllowed("SELECT * FROM @.sagas", "SELECT * FROM @.saga_steps", "SELECT * FROM @.saga_signals")
	other("producer").mustNotBeAllowed("SELECT * FROM @.sagas", "SELECT @.act_on_saga('x', '', 'skip', 'g', '1', '')")
}

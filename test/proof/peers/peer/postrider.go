package peer

import (
	"context"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	outbox "github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

// postrider is this project, with the command as relay.
type postrider struct{}

func (postrider) Name() string { return "postrider" }

func (postrider) Version(p Programs) (string, error) {
	out, err := exec.Command(p.Postrider, "version").Output()
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "version")), err
}

func (postrider) Settings(Job) []Setting {
	return []Setting{
		{Name: "settings", Value: "none: the defaults of the command"},
		{Name: "shards", Value: "8", Default: "8"},
		{Name: "poll", Value: "5 ms busy, 50 ms idle", Default: "the same"},
	}
}

func (postrider) Setup(ctx context.Context, pool *pgxpool.Pool, j Job) (Enqueue, error) {
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		return nil, err
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Up(ctx); err != nil {
		return nil, err
	}
	box := db.Outbox()
	return func(ctx context.Context, tx pgx.Tx, msgs ...Message) error {
		events := make([]outbox.Message, len(msgs))
		for i, m := range msgs {
			events[i] = outbox.Event("order.placed", outbox.Aggregate{Type: "order", ID: m.Key}, m.Payload)
			events[i].ID, events[i].Topic = outbox.ID(m.ID), j.Topic
		}
		return box.Enqueue(ctx, tx, events...)
	}, nil
}

func (postrider) Relay(j Job, p Programs) (*exec.Cmd, error) {
	to := j.Address
	if j.Broker == "kafka" {
		to = "kafka://" + to
	}
	return exec.Command(p.Postrider, "relay", "--dsn", j.DSN, "--to", to), nil
}

// Relays is two: relays divide the shards, and keep the order of each key.
func (postrider) Relays() int { return 2 }

func (postrider) Clear(context.Context, *pgxpool.Pool, Job) error { return nil }

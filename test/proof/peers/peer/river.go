package peer

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	riverqueue "github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/postrider/postrider/test/proof/peers/broker"
)

// river is a job queue; the job publishes one message.
type river struct{ inside }

func (river) Name() string { return "river" }

func (river) Version(Programs) (string, error) { return module("github.com/riverqueue/river") }

// config has the values of River's own benchmark or, if stock, of its getting-started guide.
func (river) config(j Job) riverqueue.Config {
	c := riverqueue.Config{
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues: map[string]riverqueue.QueueConfig{riverqueue.QueueDefault: {MaxWorkers: 100}},
	}
	if !j.Stock {
		c.FetchCooldown, c.FetchPollInterval = 2*time.Millisecond, 20*time.Millisecond
		c.Queues[riverqueue.QueueDefault] = riverqueue.QueueConfig{MaxWorkers: 2000}
	}
	return c
}

func (r river) Settings(j Job) []Setting {
	if j.Stock {
		return []Setting{{Name: "MaxWorkers", Value: "100", Default: "none; its getting started has 100"}}
	}
	return []Setting{
		{Name: "MaxWorkers", Value: "2000", Default: "none; its own benchmark has 2000"},
		{Name: "FetchCooldown", Value: "2ms", Default: "100ms"},
		{Name: "FetchPollInterval", Value: "20ms", Default: "1s"},
	}
}

// publication has the arguments of a job.
type publication struct {
	ID      string `json:"id"`
	Key     string `json:"key"`
	Payload []byte `json:"payload"`
}

// Kind implements [riverqueue.JobArgs].
func (publication) Kind() string { return "publish" }

func (r river) Setup(ctx context.Context, db *pgxpool.Pool, j Job) (Enqueue, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(db), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	config := r.config(j) // its cooldown also limits how often producers notify
	config.Queues = nil
	client, err := riverqueue.NewClient(riverpgxv5.New(db), &config)
	return func(ctx context.Context, tx pgx.Tx, msgs ...Message) error {
		if len(msgs) == 1 {
			_, err := client.InsertTx(ctx, tx, newPublication(msgs[0]), nil)
			return err
		}
		jobs := make([]riverqueue.InsertManyParams, len(msgs))
		for i, m := range msgs {
			jobs[i].Args = newPublication(m)
		}
		_, err := client.InsertManyFastTx(ctx, tx, jobs)
		return err
	}, err
}

func newPublication(m Message) publication { return publication{m.ID.String(), m.Key, m.Payload} }

type publisher struct {
	riverqueue.WorkerDefaults[publication]
	to    broker.Broker
	topic string
}

// Work implements [riverqueue.Worker].
func (p *publisher) Work(ctx context.Context, job *riverqueue.Job[publication]) error {
	return p.to.Send(ctx, p.topic, broker.Message(job.Args))
}

func (r river) run(ctx context.Context, db *pgxpool.Pool, j Job) error {
	to, err := broker.Open(ctx, j.Broker, j.Address)
	if err != nil {
		return err
	}
	defer to.Close()
	config := r.config(j)
	config.Workers = riverqueue.NewWorkers()
	riverqueue.AddWorker(config.Workers, &publisher{to: to, topic: j.Topic})
	client, err := riverqueue.NewClient(riverpgxv5.New(db), &config)
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return client.Stop(stop)
}

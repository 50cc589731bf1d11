package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	_ "github.com/postrider/postrider/broker/kafka"    // found by name
	_ "github.com/postrider/postrider/broker/nats"     // likewise
	_ "github.com/postrider/postrider/broker/rabbitmq" // likewise
	_ "github.com/postrider/postrider/broker/redis"    // likewise
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// inFlight is how many messages of a destination are handled concurrently.
const inFlight = 256

// redelivery is the longest time until a redelivery. The inbox rejects a shorter retention.
const redelivery = time.Hour

// timeout is the deadline of handlers: longer than most faults of the database, and short enough
// that handlers that hang recover soon.
const timeout = 15 * time.Second

// Name returns the consumer name of a destination, as its inbox knows it.
func Name(destination string) string { return "campaign-" + destination }

// Share returns the destinations that the process with a number, from 1, receives from. Consumer
// groups of Kafka and single active consumers of RabbitMQ keep order among several processes. NATS
// and Redis do not, so each of them has only one process. Processes after the second come and go.
func Share(number int, destinations []string) []string {
	return slices.DeleteFunc(slices.Clone(destinations), func(d string) bool {
		return d == world.HTTP || d == world.NATS && number != 1 || d == world.Redis && number != 2
	})
}

// Run consumes from destinations until ctx ends. The process name identifies the consumer at
// brokers.
func Run(ctx context.Context, plan work.Plan, process string, destinations []string, m *Manner, log *slog.Logger) error {
	pool, db, err := open(ctx, plan)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(destinations))
	var all sync.WaitGroup
	for i, destination := range destinations {
		in, err := newInbox(db, destination, m, log)
		if err != nil {
			return err
		}
		from, err := subscribe(plan, process, destination, log)
		if err != nil {
			return err
		}
		all.Go(func() {
			if errs[i] = in.Run(ctx, from); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", destination, errs[i])
				cancel()
			}
		})
	}
	<-ctx.Done() // also if there is nothing to receive
	all.Wait()
	return errors.Join(errs...)
}

func open(ctx context.Context, plan work.Plan) (*pgxpool.Pool, *postgres.DB, error) {
	config, err := pgxpool.ParseConfig(plan.Consumers)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = 16
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	db, err := postgres.Open(pool, postgres.Config{})
	return pool, db, err
}

func subscribe(plan work.Plan, process, destination string, log *slog.Logger) (postrider.Consumer, error) {
	driver, err := broker.ForURL(plan.Brokers[destination])
	if err != nil {
		return nil, err
	}
	values := map[string]string{"name": destination, "group": "campaign", "in_flight": fmt.Sprint(inFlight)}
	switch destination {
	case world.NATS:
		values["ack_wait"] = "5s"
	case world.RabbitMQ:
		values["name"] = work.Queue
		delete(values, "group")
	case world.Redis:
		values["consumer"] = process
	}
	return driver.Subscribe(&broker.Settings{URL: plan.Brokers[destination], Values: values, Logger: log})
}

func newInbox(db *postgres.DB, destination string, m *Manner, log *slog.Logger) (*inbox.Inbox[pgx.Tx], error) {
	in, err := inbox.New(db.Inbox(), Name(destination), inbox.Config{Logger: log, Batch: inFlight, Redelivery: redelivery, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	in.HandleBatch("*", func(ctx context.Context, tx pgx.Tx, msgs []postrider.Message) error {
		if err := m.before(ctx); err != nil {
			return err
		}
		return apply(ctx, tx, destination, msgs)
	})
	return in, nil
}

// apply is the effect of messages: one row each.
func apply(ctx context.Context, tx pgx.Tx, destination string, msgs []postrider.Message) error {
	var keys, ids []string
	var numbers, foreign []int64
	for i := range msgs {
		headers := work.OursOf(msgs[i].Headers)
		if n, ok := headers.Foreign(); ok {
			if msgs[i].Type == work.TypeForeign {
				return postrider.Permanent(errors.New("this is none of ours"))
			}
			foreign = append(foreign, n)
			continue
		}
		at, key, seq, err := work.Read(msgs[i].Payload, headers)
		if err == nil && (at != destination || work.Spelling(key) != msgs[i].OrderKey()) {
			err = fmt.Errorf("message %s of %s and key %s has come by %s with key %s", msgs[i].ID, at, key, destination, msgs[i].OrderKey())
		}
		if err != nil {
			return postrider.Permanent(err)
		}
		keys, numbers, ids = append(keys, key), append(numbers, seq), append(ids, msgs[i].ID.String())
	}
	_, err := tx.Exec(ctx, `INSERT INTO campaign.effects (consumer, destination, key, seq, id)
		SELECT $1, $2, * FROM unnest($3::text[], $4::bigint[], $5::text[]::uuid[])`, Name(destination), destination, keys, numbers, ids)
	if err == nil && len(foreign) > 0 {
		_, err = tx.Exec(ctx, "INSERT INTO campaign.foreign_ends SELECT unnest($1::bigint[])", foreign)
	}
	return err
}

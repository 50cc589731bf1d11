package watermill

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	wm "github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// placeOrder publishes with the transaction that stores the order.
//
//docs:begin publisher
func placeOrder(ctx context.Context, tx *sql.Tx, outbox postrider.Outbox[*sql.Tx], orderID string) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", orderID); err != nil {
		return err
	}
	var publisher message.Publisher = watermill.NewPublisher(ctx, outbox, tx, watermill.PublisherConfig{KeyMetadata: "order_id"})
	m := message.NewMessageWithContext(ctx, wm.NewUUID(), []byte(`{"total": 7}`))
	m.Metadata.Set("order_id", orderID)
	return publisher.Publish("orders", m)
}

//docs:end

// TestTransaction publishes with Watermill's interface on both kinds of transactions. What was
// committed is in the log, in order; what was rolled back is not.
func TestTransaction(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		pool := pgtest.Pool(t, dsn)
		cfg := pgtest.Schema(t, pool, postgres.Layout{})
		db, err := postgres.Open(pool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		outbox := db.Outbox()
		failure := errors.New("rolled back")
		for i, outcome := range []error{nil, failure, nil} {
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				p := watermill.NewPublisher(ctx, outbox, tx, watermill.PublisherConfig{})
				number := fmt.Append(nil, i)
				if err := p.Publish("numbers", message.NewMessage(wm.NewUUID(), number), message.NewMessage(wm.NewULID(), number)); err != nil {
					return err
				}
				return outcome
			})
			if !errors.Is(err, outcome) {
				t.Fatal(err)
			}
		}
		sqlPool := stdlib.OpenDBFromPool(pool)
		t.Cleanup(func() { _ = sqlPool.Close() })
		sqlDB, err := postgres.OpenSQL(sqlPool, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, commit := range []bool{false, true} {
			tx, err := sqlPool.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(ctx, "CREATE TEMPORARY TABLE orders (id text) ON COMMIT DROP"); err != nil {
				t.Fatal(err)
			}
			if err := placeOrder(ctx, tx, sqlDB.Outbox(), fmt.Sprintf("order-%v", commit)); err != nil {
				t.Fatal(err)
			}
			end := tx.Rollback
			if commit {
				end = tx.Commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		var got string
		query := `SELECT string_agg(topic || ' ' || coalesce(key, '-') || ' ' || convert_from(payload, 'UTF8'), ', ' ORDER BY seq) FROM ` +
			pgx.Identifier{cfg.Schema, "messages"}.Sanitize()
		if err := pool.QueryRow(ctx, query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := `numbers - 0, numbers - 0, numbers - 2, numbers - 2, orders order-true {"total": 7}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestWholeWay checks that a Watermill application sees no difference: what its code publishes in a
// transaction, its subscriber receives with the same UUID and metadata, through the outbox, the
// relay and Watermill's publisher for Redis.
func TestWholeWay(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, host, c := redisServer(t)
	topic := stream(t, c)
	pool := pgtest.Pool(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	db, err := postgres.Open(pool, pgtest.Schema(t, pool, postgres.Layout{}))
	if err != nil {
		t.Fatal(err)
	}
	outbox := db.Outbox()
	destination, err := redisDestination(host, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(db.Feeds(), destination, relay.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- r.Run(ctx) }()

	const count = 50
	var uuids []string
	for i := range count {
		m := message.NewMessage(wm.NewUUID(), fmt.Append(nil, i))
		if i%2 == 1 {
			m.UUID = wm.NewULID() // not a UUID
		}
		m.Metadata = message.Metadata{"order_id": "42", "trace": fmt.Sprint(i)}
		uuids = append(uuids, m.UUID)
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			return watermill.NewPublisher(ctx, outbox, tx, watermill.PublisherConfig{KeyMetadata: "order_id"}).Publish(topic, m)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	subscriber, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{Client: c, ConsumerGroup: "test", OldestId: "0"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	arrived, err := subscriber.Subscribe(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		select {
		case m := <-arrived:
			if m.UUID != uuids[i] || string(m.Payload) != fmt.Sprint(i) || m.Metadata["trace"] != fmt.Sprint(i) || m.Metadata["key"] != "42" {
				t.Fatalf("message %d: got %s %s %v, want UUID %s", i, m.UUID, m.Payload, m.Metadata, uuids[i])
			}
			m.Ack()
		case <-time.After(30 * time.Second):
			t.Fatalf("message %d has not arrived", i)
		}
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if err := destination.Close(); err != nil {
		t.Error(err)
	}
}

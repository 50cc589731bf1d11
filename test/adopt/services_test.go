package adopt_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt"
	"github.com/postrider/postrider/store/table/tabletest"
)

// TestServicesWithTheSameTable has two services that each adopt a table "outbox" with ascending IDs
// and send to one stream. Neither the stream nor an inbox may mistake a message of one for a
// duplicate of the other's.
func TestServicesWithTheSameTable(t *testing.T) {
	t.Parallel()
	each := 100
	if need.IsLong() {
		each = 10_000
	}
	layout := table.Layout{
		Table: "outbox", ID: "id", DefaultType: "noted", Columns: table.Columns{Payload: "payload"},
		State: table.State{Status: "status", Pending: []string{"pending"}, Published: "sent"},
	}
	preset, _ := adopt.PresetNamed("events-bigserial")
	formed := layout
	formed.WireID = preset.Layout.WireID
	for name, layout := range map[string]table.Layout{"ID of the message": layout, "form of the preset": formed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quiet := slog.New(slog.DiscardHandler)
			url, dsn := pgtest.Env(t, "POSTRIDER_TEST_NATS"), pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			conn, err := client.Connect(url)
			check(err)
			t.Cleanup(conn.Close)
			js, err := jetstream.New(conn)
			check(err)
			topic := "services-" + postrider.NewID().String()
			stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
				Name: topic, Subjects: []string{topic}, Storage: jetstream.MemoryStorage, Duplicates: time.Minute,
			})
			check(err)
			t.Cleanup(func() { _ = js.DeleteStream(context.WithoutCancel(t.Context()), topic) })

			for _, s := range []tabletest.Server{tabletest.Postgres(t, dsn), tabletest.MariaDB(t)} {
				_, err := s.DB.ExecContext(t.Context(), "CREATE TABLE outbox (id bigint PRIMARY KEY, payload text NOT NULL, status varchar(9) NOT NULL DEFAULT 'pending')")
				check(err)
				cfg := table.Config{Dialect: s.Dialect, Layout: layout}
				tabletest.Migrate(t, s, cfg)
				for i := range each {
					_, err := s.DB.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO outbox (id, payload) VALUES (%d, '%s %[1]d')", i+1, s.Dialect))
					check(err)
				}
				outbox, err := table.Open(s.DB, cfg)
				check(err)
				out, err := nats.NewPublisher(nats.Config{URL: url, Logger: quiet})
				check(err)
				routes, err := route.NewTable([]route.Rule{{Destination: "nats", Name: topic}})
				check(err)
				router, err := route.NewRouter(routes, map[string]postrider.Publisher{"nats": out}, route.Config{})
				check(err)
				r, err := relay.New(outbox.Feeds(), router, relay.Config{Logger: quiet})
				check(err)
				run(t, r.Run)
			}
			until(t, "the stream has all messages", func() bool {
				info, err := stream.Info(t.Context())
				check(err)
				return info.State.Msgs == uint64(2*each)
			})

			pool := pgtest.Pool(t, dsn)
			db, err := postgres.Open(pool, pgtest.Schema(t, pool, postgres.Layout{}))
			check(err)
			in, err := inbox.New(db.Inbox(), "reader", inbox.Config{Logger: quiet})
			check(err)
			var handled atomic.Int64
			in.Handle("*", func(context.Context, pgx.Tx, postrider.Message) error {
				handled.Add(1)
				return nil
			})
			consumer, err := nats.NewConsumer(nats.Config{URL: url, Name: topic, Group: "reader", Logger: quiet})
			check(err)
			run(t, func(ctx context.Context) error { return in.Run(ctx, consumer) })
			until(t, "the inbox has handled all messages", func() bool { return handled.Load() == int64(2*each) })
		})
	}
}

// run runs a function until the test ends.
func run(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

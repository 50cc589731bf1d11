package console

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// database is a separate database on the tests' server, with a schema in it.
type database struct {
	dsn  string
	pool *pgxpool.Pool
	*postgres.DB
}

// newDatabase creates a database that lives as long as the test.
func newDatabase(t *testing.T, name string) database {
	t.Helper()
	server := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	name = fmt.Sprintf("console_%s_%d_%d", name, os.Getpid(), time.Now().UnixMilli())
	admin := func(sql string) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
		return err
	}
	if err := admin("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	dsn, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	dsn.Path = "/" + name
	d := database{dsn: dsn.String(), pool: pgtest.Pool(t, dsn.String())}
	if d.DB, err = postgres.Open(d.pool, postgres.Config{}); err != nil {
		t.Fatal(err)
	}
	migrator, err := d.Migrator(postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// newStream creates a stream that accepts messages of up to 8 kB and is deleted after the test.
func newStream(t *testing.T) (server, name string) {
	t.Helper()
	server = need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	if !strings.Contains(server, "://") {
		server = "nats://" + server
	}
	conn, err := nats.Connect(server)
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	name = fmt.Sprintf("shop%d%d", os.Getpid(), time.Now().UnixMilli()%100_000)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, MaxMsgSize: 8 << 10,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := js.DeleteStream(ctx, name); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
	return server, name
}

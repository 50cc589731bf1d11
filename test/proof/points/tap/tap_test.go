package tap_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// each runs a test for both ways that a process survives: the call is not executed, or its answer is lost.
func each(t *testing.T, test func(t *testing.T, gate *tap.Gate, executed bool)) {
	for _, way := range []tap.Way{tap.Error, tap.Unheard} {
		t.Run(string(way), func(t *testing.T) {
			var events strings.Builder
			gate := &tap.Gate{Point: "write 2", Way: way, Events: &events, Limit: func(string) int { return 9 }}
			test(t, gate, way == tap.Unheard)
			if got, want := events.String(), "point write 1\npoint write 2\nstrike\n"; got != want {
				t.Errorf("events %q, want %q", got, want)
			}
		})
	}
}

// TestPostgres lets the second of two inserts go wrong, which are sent alone, and together in a transaction.
func TestPostgres(t *testing.T) {
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	name := func(sql string, _ [][]byte) string {
		if strings.HasPrefix(sql, "INSERT") {
			return "write"
		}
		return ""
	}
	each(t, func(t *testing.T, gate *tap.Gate, executed bool) {
		pool, insert := table(t, dsn)
		conn := open(t, dsn, gate.Dial(tap.Postgres(name)))
		if _, err := conn.Exec(t.Context(), insert, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), insert, 2); err == nil || !conn.IsClosed() {
			t.Errorf("the second insert: %v, closed is %v", err, conn.IsClosed())
		}
		if n := count(t, pool, insert); (n == 2) != executed || n == 0 {
			t.Errorf("%d rows", n)
		}
	})
	each(t, func(t *testing.T, gate *tap.Gate, _ bool) {
		pool, insert := table(t, dsn)
		conn := open(t, dsn, gate.Dial(tap.Postgres(name)))
		var batch pgx.Batch
		batch.Queue("BEGIN")
		batch.Queue(insert, 1)
		batch.Queue(insert, 2)
		batch.Queue("COMMIT")
		if err := conn.SendBatch(t.Context(), &batch).Close(); err == nil {
			t.Error("the batch has gone through")
		}
		if n := count(t, pool, insert); n != 0 { // what is behind the second insert was not sent
			t.Errorf("%d rows", n)
		}
	})
}

func table(t *testing.T, dsn string) (*pgxpool.Pool, string) {
	t.Helper()
	pool := pgtest.Pool(t, dsn)
	name := pgx.Identifier{"tap_" + strings.ToLower(strings.NewReplacer("/", "_", "#", "_").Replace(t.Name()))}.Sanitize()
	for _, sql := range []string{"DROP TABLE IF EXISTS " + name, "CREATE TABLE " + name + " (n int)"} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _, _ = pool.Exec(context.Background(), "DROP TABLE "+name) })
	return pool, "INSERT INTO " + name + " VALUES ($1)"
}

func count(t *testing.T, pool *pgxpool.Pool, insert string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+strings.Fields(insert)[2]).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func open(t *testing.T, dsn string, dial func(context.Context, string, string) (net.Conn, error)) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.DialFunc = dial
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// TestNATS lets the second of two messages go wrong.
func TestNATS(t *testing.T) {
	url := pgtest.Env(t, "POSTRIDER_TEST_NATS")
	each(t, func(t *testing.T, gate *tap.Gate, executed bool) {
		name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
		admin := jets(t, url, nil)
		stream, err := admin.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Storage: jetstream.MemoryStorage})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.DeleteStream(context.Background(), name) })
		js := jets(t, url, gate.Dial(tap.NATS(func(subject string, _ []byte) string {
			if subject == name {
				return "write"
			}
			return ""
		})))
		if _, err := js.Publish(t.Context(), name, []byte("1")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := js.Publish(ctx, name, []byte("2")); err == nil {
			t.Error("the second message was confirmed")
		}
		info, err := stream.Info(t.Context())
		if err != nil || (info.State.Msgs == 2) != executed || info.State.Msgs == 0 {
			t.Errorf("%+v messages: %v", info, err)
		}
	})
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func jets(t *testing.T, url string, dial dialer) jetstream.JetStream {
	t.Helper()
	options := []client.Option{client.NoReconnect()}
	if dial != nil {
		options = append(options, client.SetCustomDialer(dial))
	}
	conn, err := client.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// TestAMQP lets the second of two messages go wrong.
func TestAMQP(t *testing.T) {
	url := pgtest.Env(t, "POSTRIDER_TEST_RABBITMQ")
	each(t, func(t *testing.T, gate *tap.Gate, executed bool) {
		admin := channel(t, url, amqp.DefaultDial(10*time.Second))
		queue, err := admin.QueueDeclare("", false, true, true, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		ch := channel(t, url, func(network, address string) (net.Conn, error) {
			return gate.Dial(tap.AMQP(func(class, method uint16) string {
				if class == 60 && method == 40 {
					return "write"
				}
				return ""
			}))(t.Context(), network, address)
		})
		if err := ch.Confirm(false); err != nil {
			t.Fatal(err)
		}
		for n, confirmed := range []bool{true, false} {
			confirmation, err := ch.PublishWithDeferredConfirm("", queue.Name, true, false, amqp.Publishing{Body: []byte("body")})
			if err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				var acked bool
				if acked, err = confirmation.WaitContext(ctx); err == nil && !acked {
					err = io.EOF
				}
			}
			if (err == nil) != confirmed {
				t.Errorf("message %d: %v", n+1, err)
			}
		}
		info, err := admin.QueueDeclarePassive(queue.Name, false, true, true, false, nil)
		if err != nil || (info.Messages == 2) != executed || info.Messages == 0 {
			t.Errorf("%d messages: %v", info.Messages, err)
		}
	})
}

func channel(t *testing.T, url string, dial func(network, address string) (net.Conn, error)) *amqp.Channel {
	t.Helper()
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

package cdc_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestDebezium runs Debezium Server with the configuration from the documentation, from PostgreSQL
// to Kafka, and kills it in between. Our own consumer for Debezium's records reads them.
// testdata/debezium fetches what is needed and runs it.
func TestDebezium(t *testing.T) {
	need.Long(t, "takes Debezium Server, 782 MB")
	home := need.Env(t, "POSTRIDER_TEST_DEBEZIUM", "debezium")
	servers := pgtest.Env(t, "POSTRIDER_TEST_KAFKA_CDC")
	dsn := pgtest.Database(t, start(t))
	pool := pgtest.Pool(t, dsn)
	db, err := postgres.Open(pool, postgres.Config{})
	if err != nil {
		t.Fatal(err)
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'postrider'", // left by an earlier run
		fmt.Sprintf(publish, "postrider", "postrider"),
		"SELECT pg_create_logical_replication_slot('postrider', 'pgoutput')",
		"DROP ROLE IF EXISTS debezium",
		"CREATE ROLE debezium LOGIN REPLICATION PASSWORD 'secret'",
		"GRANT USAGE ON SCHEMA postrider TO debezium",
		"GRANT SELECT ON postrider.messages TO debezium",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	kind := "order" + postrider.NewID().String()[24:]
	offsets := filepath.Join(t.TempDir(), "offsets.dat")
	kill := debezium(t, home, dsn, servers, offsets)
	sent := write(t, pool, db.Outbox(), kind, 0)
	in := consume(t, servers, "outbox.event."+kind)
	in.wait(t, sent)
	second := make(chan []postrider.Message, 1)
	go func() {
		defer close(second)
		second <- write(t, pool, db.Outbox(), kind, len(sent))
	}()
	in.waitFor(t, len(sent)+200)
	kill()
	sent = append(sent, <-second...)
	kill = debezium(t, home, dsn, servers, offsets)
	in.wait(t, sent)
	kill()
	for range 200 { // the slot prevents dropping the database at the end
		if _, err = pool.Exec(t.Context(), "SELECT pg_drop_replication_slot('postrider')"); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := pool.Exec(t.Context(), "DROP OWNED BY debezium; DROP ROLE debezium", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Error(err)
	}
	in.check(t, kind, sent)
}

// debezium starts a server and returns a function that kills it.
func debezium(t *testing.T, home, dsn, servers, offsets string) (kill func()) {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	properties, err := filepath.Abs("testdata/application.properties")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./run.sh")
	cmd.Dir = home
	cmd.Env = append(os.Environ(),
		"DATABASE_HOST="+address.Hostname(), "DATABASE_PORT="+address.Port(), "DATABASE_USER=debezium",
		"DATABASE_PASSWORD=secret", "DATABASE_NAME="+strings.TrimPrefix(address.Path, "/"), "KAFKA_SERVERS="+servers,
		"OFFSETS_FILE="+offsets, "QUARKUS_CONFIG_LOCATIONS="+properties, "QUARKUS_HTTP_PORT=0", "QUARKUS_LOG_CONSOLE_JSON_ENABLED=false",
		"JAVA_OPTS=-Xmx512m --add-opens=java.base/java.lang=ALL-UNNAMED") // the second option is for Java 24 and newer
	log, err := os.Create(filepath.Join(t.TempDir(), "debezium.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the end of its log:\n%s", text[max(0, len(text)-4000):])
		}
		_ = log.Close()
	})
	t.Cleanup(kill)
	return kill
}

// write commits 2000 messages of 20 keys, after rolling back some of them first, and returns them
// in commit order.
func write(t *testing.T, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, outbox *postgres.Outbox, kind string, from int) []postrider.Message {
	t.Helper()
	var sent []postrider.Message
	for i := range 2000 {
		n := from + i
		payload := fmt.Appendf(nil, "{\"n\":   %d}\n", n)
		if i%10 == 0 {
			payload = append(payload, 0, 0xff, 0xfe) // not valid text
		}
		m := postrider.Event("OrderPlaced", postrider.Aggregate{Type: kind, ID: fmt.Sprint(n % 20)}, payload)
		m.TenantID, m.Headers = "acme", map[string]string{"traceparent": fmt.Sprint(n)}
		if i%7 == 0 {
			tx, err := db.Begin(t.Context())
			if err == nil {
				err = outbox.Enqueue(t.Context(), tx, postrider.Event("OrderPlaced", postrider.Aggregate{Type: kind, ID: m.AggregateID}, []byte("rolled back")))
			}
			if err == nil {
				err = tx.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return outbox.Enqueue(t.Context(), tx, m) })
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, m)
	}
	return sent
}

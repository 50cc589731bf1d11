package peer

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// debezium is Debezium Server with the outbox event router: it reads committed messages from the
// write-ahead log.
type debezium struct{}

//go:embed debezium.properties
var debeziumProperties []byte

const debeziumPoll = 500 * time.Millisecond

func (debezium) Name() string { return "debezium" }

// Version returns the version in the name of the program's file.
func (debezium) Version(p Programs) (string, error) {
	cores, err := filepath.Glob(filepath.Join(p.Debezium, "lib", "debezium-server-core-*.jar"))
	if err != nil || len(cores) != 1 {
		return "", fmt.Errorf("peer: there is no Debezium Server in %q", p.Debezium)
	}
	_, version, _ := strings.Cut(filepath.Base(cores[0]), "core-")
	return "Server " + strings.TrimSuffix(version, ".jar"), nil
}

func (debezium) Settings(j Job) []Setting {
	return []Setting{
		j.poll("poll.interval.ms", debeziumPoll),
		{Name: "max.batch.size, max.queue.size", Value: "2048, 8192", Default: "2048, 8192"},
		{Name: "heap", Value: "-Xmx512m", Default: "a quarter of the memory"},
		{Name: "slot and publication", Value: "made before the first message"},
		{Name: "rows", Value: "stay in the table; emptying it is not part of the work"},
	}
}

func (debezium) Setup(ctx context.Context, db *pgxpool.Pool, _ Job) (Enqueue, error) {
	return insert("INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload) VALUES ($1, 'order', $2, 'order.placed', $3)"),
		execute(ctx, db,
			`CREATE TABLE outbox (
				id            uuid  NOT NULL PRIMARY KEY,
				aggregatetype text  NOT NULL,
				aggregateid   text  NOT NULL,
				type          text  NOT NULL,
				payload       bytea
			)`,
			"CREATE PUBLICATION outbox FOR TABLE outbox WITH (publish = 'insert')",
			"SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')")
}

func (debezium) Relay(j Job, p Programs) (*exec.Cmd, error) {
	database, err := url.Parse(j.DSN)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(database.Path, "/")
	properties := filepath.Join(p.Scratch, name+".properties")
	if err := os.WriteFile(properties, debeziumProperties, 0o644); err != nil {
		return nil, err
	}
	var server url.URL
	if j.Broker != "kafka" {
		parsed, err := url.Parse(j.Address)
		if err != nil {
			return nil, err
		}
		server = *parsed
	}
	password, _ := server.User.Password()
	sink := j.Broker
	if sink == "nats" {
		sink = "nats-jetstream"
	}
	cmd := exec.Command("./run.sh")
	cmd.Dir = p.Debezium
	cmd.Env = append(os.Environ(),
		"DATABASE_HOST="+database.Hostname(), "DATABASE_PORT="+database.Port(), "DATABASE_USER="+database.User.Username(),
		"DATABASE_PASSWORD=unused", "DATABASE_NAME="+name, "SLOT="+name, "TOPIC="+j.Topic, "SINK="+sink, "BROKER="+j.Address,
		"BROKER_HOST="+server.Hostname(), "BROKER_PORT="+server.Port(), "BROKER_USER="+server.User.Username(), "BROKER_PASSWORD="+password,
		"POLL_MS="+strconv.FormatInt(j.interval(debeziumPoll).Milliseconds(), 10),
		"OFFSETS_FILE="+filepath.Join(p.Scratch, name+".offsets"), "QUARKUS_CONFIG_LOCATIONS="+properties,
		"QUARKUS_HTTP_PORT=0", "QUARKUS_LOG_CONSOLE_JSON_ENABLED=false",
		"JAVA_OPTS=-Xmx512m --add-opens=java.base/java.lang=ALL-UNNAMED") // the second option is for Java 24 and newer
	return cmd, nil
}

func (debezium) Relays() int { return 1 }

// Clear drops the slot, which belongs to the server and not to the database. Its reader may need a
// moment to disconnect.
func (debezium) Clear(ctx context.Context, db *pgxpool.Pool, _ Job) error {
	const drop = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = current_database()"
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := db.Exec(ctx, drop)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

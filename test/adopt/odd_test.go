package adopt_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
)

// oddTable is a table with a property that our own layouts lack.
type oddTable struct {
	// mysql and postgres are the columns on either server, before the common ones. The table is not
	// tested on a server without them.
	mysql, postgres string
	constraints     string
	after           []string                  // statements after CREATE TABLE; those for one server begin with its name and a colon
	id              func(n int) any           // nil if the server generates IDs
	columns         func(*table.Layout)       // what else the layout declares
	insert          func(n int) (string, any) // an additional column, and its value
	zone            bool                      // relays have sessions in another time zone than producers
	often           bool                      // runs in every run of the tests
}

const oddColumns = `aggregate_id varchar(64) %bytewise NOT NULL, type varchar(64) NOT NULL DEFAULT 'changed', payload %json NOT NULL,
	status varchar(16) NOT NULL DEFAULT 'pending', at %now`

var oddTables = map[string]oddTable{
	"composite key":      {mysql: "id bigint NOT NULL AUTO_INCREMENT, tenant varchar(9) NOT NULL DEFAULT 'a'", postgres: "id bigserial, tenant varchar(9) NOT NULL DEFAULT 'a'", constraints: "PRIMARY KEY (id, tenant)"},
	"unsigned IDs":       {mysql: "id bigint unsigned PRIMARY KEY", id: func(n int) any { return uint64(1<<63-1000) + uint64(n) }, often: true},
	"text IDs":           {mysql: "id varchar(40) PRIMARY KEY", postgres: "id varchar(40) PRIMARY KEY", id: func(n int) any { return fmt.Sprintf("row %x", rand.Int64()) }},
	"text IDs with case": {mysql: "id varchar(40) COLLATE utf8mb4_general_ci PRIMARY KEY", id: func(n int) any { return fmt.Sprintf("Row %x", rand.Int64()) }},
	"binary(16)":         {mysql: "id binary(16) PRIMARY KEY", postgres: "id uuid PRIMARY KEY", id: func(int) any { return postrider.NewID() }, often: true},
	"char(36)":           {mysql: "id char(36) PRIMARY KEY", postgres: "id char(36) PRIMARY KEY", id: func(int) any { return postrider.NewID().String() }},
	"ON UPDATE":          {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, touched timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"},
	"triggers": {
		mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, touched int NOT NULL DEFAULT 0", postgres: "id bigserial PRIMARY KEY, touched int NOT NULL DEFAULT 0",
		after: []string{
			"CREATE TABLE audited (id bigint, status varchar(16))",
			"mysql:CREATE TRIGGER touching BEFORE UPDATE ON outbox FOR EACH ROW SET NEW.touched = OLD.touched + 1",
			"mysql:CREATE TRIGGER auditing AFTER UPDATE ON outbox FOR EACH ROW INSERT INTO audited VALUES (NEW.id, NEW.status)",
			"postgres:CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.touched = OLD.touched + 1; INSERT INTO audited VALUES (NEW.id, NEW.status); RETURN NEW; END'",
			"postgres:CREATE TRIGGER touching BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION touch()",
		},
		often: true,
	},
	"foreign keys": {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT", postgres: "id bigserial PRIMARY KEY", constraints: "FOREIGN KEY (aggregate_id) REFERENCES orders (id)",
		after: []string{"CREATE TABLE receipts (outbox bigint NOT NULL REFERENCES outbox (id))"}},
	"generated columns": {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, open int GENERATED ALWAYS AS (CASE status WHEN 'pending' THEN 1 END) STORED",
		postgres: "id bigserial PRIMARY KEY, open int GENERATED ALWAYS AS (CASE status WHEN 'pending' THEN 1 END) STORED"},
	"keys that differ in case": {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT", postgres: "id bigserial PRIMARY KEY", often: true},
	"empty strings for NULL": {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, dedup_key varchar(99) NOT NULL DEFAULT '', topic varchar(99) NOT NULL DEFAULT '', headers varchar(99) NOT NULL DEFAULT ''",
		postgres: "id bigserial PRIMARY KEY, dedup_key varchar(99) NOT NULL DEFAULT '', topic varchar(99) NOT NULL DEFAULT '', headers varchar(99) NOT NULL DEFAULT ''",
		columns: func(l *table.Layout) {
			l.Columns.DedupKey, l.Columns.Topic, l.Columns.Headers = "dedup_key", "topic", "headers"
		}},
	"JSON": {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, headers json", postgres: "id bigserial PRIMARY KEY, headers jsonb",
		columns: func(l *table.Layout) { l.Columns.Headers = "headers" },
		insert:  func(n int) (string, any) { return "headers", fmt.Sprintf(`{"n": "%d", "deep": {"a": [1, null]}}`, n) }},
	"times by default": {
		mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, due datetime NULL DEFAULT now()", postgres: "id bigserial PRIMARY KEY, due timestamp NULL DEFAULT now()",
		columns: func(l *table.Layout) { l.Columns.DeliverAfter = "due" },
		often:   true,
	},
	"zones": {mysql: "id bigint PRIMARY KEY AUTO_INCREMENT, claimed_at timestamp NULL", postgres: "id bigserial PRIMARY KEY, claimed_at timestamp NULL",
		columns: func(l *table.Layout) { l.State.Processing, l.State.ClaimedAt = "processing", "claimed_at" },
		zone:    true},
}

// TestOddTables tests tables with properties found in other people's applications. Producers write
// on keys, and three relay processes are killed, or suspended for longer than their lease, one
// after the other. No message is lost, no row is marked that was not sent, and every key keeps its
// order.
func TestOddTables(t *testing.T) {
	for name, each := range oddTables {
		if !each.often && !need.IsLong() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, open := range servers(t) {
				if s := open(t); map[table.Dialect]string{table.MySQL: each.mysql, table.PostgreSQL: each.postgres}[s.Dialect] != "" {
					t.Run(s.Name, func(t *testing.T) { playOdd(t, &each, s.Server, strings.Contains(name, "case")) })
				}
			}
		})
	}
}

// namedServer is a server with a name for its subtest.
type namedServer struct {
	tabletest.Server
	Name string
}

func servers(t *testing.T) []func(*testing.T) namedServer {
	t.Helper()
	return []func(*testing.T) namedServer{
		func(t *testing.T) namedServer { return namedServer{tabletest.MariaDB(t), "mariadb"} },
		func(t *testing.T) namedServer {
			return namedServer{tabletest.Postgres(t, need.Env(t, "POSTRIDER_TEST_POSTGRES18", "postgres18")), "pg18"}
		},
	}
}

// oddPlay is a table with its writers and relays.
type oddPlay struct {
	*testing.T
	table  *oddTable
	server tabletest.Server
	cfg    table.Config
	stream jetstream.Stream
	topic  string
	keys   []string
}

func playOdd(t *testing.T, given *oddTable, s tabletest.Server, cases bool) {
	messages, every, most := 400, 300*time.Millisecond, 4
	if need.IsLong() {
		messages, every, most = 20_000, 700*time.Millisecond, 1000
	}
	p := &oddPlay{T: t, table: given, server: s}
	for i := range 25 {
		p.keys = append(p.keys, fmt.Sprintf("key%d", i))
		if cases {
			p.keys = append(p.keys, fmt.Sprintf("KEY%d", i))
		}
	}
	p.create()
	p.connect()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var faults int
	relays := p.relays(3)
	harmed := make(chan struct{})
	go func() {
		defer close(harmed)
		faults = relays.harm(ctx, every, most)
	}()
	p.produce(messages)
	for deadline := time.Now().Add(2 * time.Minute); p.count("status = 'sent'") < messages; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in two minutes %d of %d rows say that they were sent", p.count("status = 'sent'"), messages)
		}
	}
	stop()
	<-harmed
	relays.stop()
	p.check(messages, faults)
}

func (p *oddPlay) exec(statement string) {
	p.Helper()
	if _, err := p.server.DB.ExecContext(p.Context(), statement); err != nil {
		p.Fatalf("%v\n%s", err, statement)
	}
}

func (p *oddPlay) count(condition string) (n int) {
	p.Helper()
	if err := p.server.DB.QueryRowContext(p.Context(), "SELECT count(*) FROM outbox WHERE "+condition).Scan(&n); err != nil {
		p.Fatal(err)
	}
	return n
}

// create creates the tables and sets the layout of the odd one.
func (p *oddPlay) create() {
	p.Helper()
	columns, server := p.table.mysql, "mysql:"
	// The order row serializes writers: each waits for the previous one on its key.
	words := []string{"%json", "json", "%now", "timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)", "%bytewise", "COLLATE utf8mb4_bin"}
	if p.server.Dialect == table.PostgreSQL {
		columns, server = p.table.postgres, "postgres:"
		words = []string{"%json", "jsonb", "%now", "timestamptz NOT NULL DEFAULT clock_timestamp()", "%bytewise", ""}
	}
	kinds := strings.NewReplacer(words...).Replace
	p.exec(kinds("CREATE TABLE orders (id varchar(64) %bytewise PRIMARY KEY, n int NOT NULL DEFAULT 0)"))
	for _, key := range p.keys {
		p.exec("INSERT INTO orders (id) VALUES ('" + key + "')")
	}
	text := "CREATE TABLE outbox (" + columns + ", " + kinds(oddColumns)
	if p.table.constraints != "" {
		text += ", " + p.table.constraints
	}
	p.exec(text + ")")
	for _, statement := range p.table.after {
		if own, ok := strings.CutPrefix(statement, server); ok {
			p.exec(own)
		} else if !strings.HasPrefix(statement, "mysql:") && !strings.HasPrefix(statement, "postgres:") {
			p.exec(statement)
		}
	}
	layout := table.Layout{
		Table: "outbox", ID: "id", Columns: table.Columns{Type: "type", AggregateID: "aggregate_id", Payload: "payload"},
		State: table.State{Status: "status", Pending: []string{"pending"}, Published: "sent", Dead: "dead"},
	}
	if p.table.id != nil {
		layout.OrderBy = []string{"at", "id"}
	}
	if p.table.columns != nil {
		p.table.columns(&layout)
	}
	p.cfg = table.Config{Dialect: p.server.Dialect, Layout: layout}
	tabletest.Migrate(p.T, p.server, p.cfg)
}

func (p *oddPlay) connect() {
	p.Helper()
	conn, err := client.Connect(need.Env(p.T, "POSTRIDER_TEST_NATS", "nats"))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		p.Fatal(err)
	}
	p.topic = "odd-" + postrider.NewID().String()
	// Duplicates must be visible, so the server's deduplication window is minimal.
	p.stream, err = js.CreateStream(p.Context(), jetstream.StreamConfig{Name: p.topic, Subjects: []string{p.topic}, Storage: jetstream.MemoryStorage, Duplicates: 100 * time.Millisecond})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = js.DeleteStream(context.WithoutCancel(p.Context()), p.topic) })
}

// produce writes rows, each in a transaction with the order whose number it publishes.
func (p *oddPlay) produce(messages int) {
	p.Helper()
	var all sync.WaitGroup
	for writer := range 4 {
		all.Go(func() {
			for n := writer; n < messages; n += 4 {
				if err := p.write(n); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

func (p *oddPlay) write(n int) error {
	tx, err := p.server.DB.BeginTx(p.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	key, number := p.keys[rand.IntN(len(p.keys))], 0
	if _, err := tx.ExecContext(p.Context(), "UPDATE orders SET n = n + 1 WHERE id = '"+key+"'"); err != nil {
		return err
	}
	if err := tx.QueryRowContext(p.Context(), "SELECT n FROM orders WHERE id = '"+key+"'").Scan(&number); err != nil {
		return err
	}
	columns, values := []string{"aggregate_id", "payload"}, []any{key, fmt.Sprintf(`{"of": %q, "n": %d}`, key, number)}
	if p.table.id != nil {
		columns, values = append(columns, "id"), append(values, p.table.id(n))
		if id, ok := values[len(values)-1].(postrider.ID); ok && p.server.Dialect == table.PostgreSQL {
			values[len(values)-1] = id.String()
		} else if ok {
			values[len(values)-1] = id[:]
		}
	}
	if p.table.insert != nil {
		column, value := p.table.insert(n)
		columns, values = append(columns, column), append(values, value)
	}
	marks := make([]string, len(columns))
	for i := range marks {
		if marks[i] = "?"; p.server.Dialect == table.PostgreSQL {
			marks[i] = fmt.Sprintf("$%d", i+1)
		}
	}
	statement := "INSERT INTO outbox (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	if _, err := tx.ExecContext(p.Context(), statement, values...); err != nil {
		return fmt.Errorf("%w: %s", err, statement)
	}
	return tx.Commit()
}

// check reads and checks everything that arrived.
func (p *oddPlay) check(messages, faults int) {
	p.Helper()
	consumer, err := p.stream.OrderedConsumer(p.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		p.Fatal(err)
	}
	info, err := p.stream.Info(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	last, inverted, seen := map[string]int{}, 0, map[string]bool{}
	for range info.State.Msgs {
		m, err := consumer.Next()
		if err != nil {
			p.Fatal(err)
		}
		var a arrival
		if err := json.Unmarshal(m.Data(), &a); err != nil {
			p.Fatal(err)
		}
		if id := fmt.Sprint(a.Of, " ", a.N); !seen[id] {
			seen[id] = true
			if a.N <= last[a.Of] {
				inverted++
			}
			last[a.Of] = a.N
		}
	}
	lost, again := messages-len(seen), int(info.State.Msgs)-len(seen)
	p.Logf("%d messages, %d relays killed or stopped: %d lost or marked without being sent, %d out of order, %d twice", messages, faults, lost, inverted, again)
	if lost != 0 || inverted != 0 || faults == 0 {
		p.Error("0, 0 and some faults wanted")
	}
	if most := faults * 3000; again > most { // what three relays may have in flight
		p.Errorf("%d came twice with %d faults", again, faults)
	}
}

const oddVariable = "POSTRIDER_TEST_ADOPT_ODD"

// oddRelay configures a relay process.
type oddRelay struct {
	Config  table.Config
	Address string
	NATS    string
	Topic   string
}

func runOddRelay(text string) error {
	var o oddRelay
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	db, err := sql.Open(driverOf(o.Config.Dialect), o.Address)
	if err != nil {
		return err
	}
	o.Config.Layout.DefaultTopic = o.Topic
	opened, err := table.Open(db, o.Config)
	if err != nil {
		return err
	}
	out, err := nats.NewPublisher(nats.Config{URL: o.NATS, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	r, err := relay.New(opened.Feeds(), out, relay.Config{Lease: time.Second, BalanceInterval: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	return r.Run(context.Background())
}

// oddRelays are the relay processes.
type oddRelays struct {
	*oddPlay
	order string

	mu      sync.Mutex
	running []*exec.Cmd
}

func (p *oddPlay) relays(n int) *oddRelays {
	p.Helper()
	address := p.server.Address
	if p.table.zone && p.server.Dialect == table.MySQL {
		with := map[bool]string{true: "&", false: "?"}[strings.Contains(address, "?")]
		address += with + "time_zone=%27-08%3A00%27"
	}
	order, err := json.Marshal(oddRelay{p.cfg, address, need.Env(p.T, "POSTRIDER_TEST_NATS", "nats"), p.topic})
	if err != nil {
		p.Fatal(err)
	}
	r := &oddRelays{oddPlay: p, order: string(order)}
	for range n {
		r.running = append(r.running, r.start())
	}
	p.Cleanup(r.stop)
	return r
}

func (r *oddRelays) start() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), oddVariable+"="+r.order)
	if r.table.zone {
		cmd.Env = append(cmd.Env, "PGTZ=America/New_York")
	}
	if err := cmd.Start(); err != nil {
		r.Error(err)
	}
	return cmd
}

// harm kills the processes one after the other, or suspends them for longer than their lease, and
// returns how often. It ends with ctx or after the maximum number of faults: on a slow machine a
// process could take longer to start than it would run.
func (r *oddRelays) harm(ctx context.Context, every time.Duration, most int) (faults int) {
	for ; faults == 0 || ctx.Err() == nil && faults < most; time.Sleep(every) {
		r.mu.Lock()
		i := faults % len(r.running)
		victim := r.running[i]
		if faults++; faults%2 == 1 {
			_ = victim.Process.Kill()
			_ = victim.Wait()
			r.running[i] = r.start()
		} else {
			_ = victim.Process.Signal(syscall.SIGSTOP)
			time.AfterFunc(1500*time.Millisecond, func() { _ = victim.Process.Signal(syscall.SIGCONT) })
		}
		r.mu.Unlock()
	}
	return faults
}

func (r *oddRelays) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cmd := range r.running {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	r.running = nil
}

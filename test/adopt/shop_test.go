package adopt_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/test/proof/history"
)

// shop is an application with its own outbox table, in a database that also has the log.
type shop struct {
	t             *testing.T
	server        tabletest.Server
	pool          *pgxpool.Pool
	classicConfig table.Config
	logConfig     postgres.Config
	db            *postgres.DB
	sink          *sink
	keys          int
	identity      string
}

func newShop(t *testing.T, keys int) *shop {
	t.Helper()
	server := tabletest.Postgres(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	d := named(t, "events-bigserial")
	d.create(t, server)
	s := &shop{t: t, server: server, pool: pgtest.Pool(t, server.Address), keys: keys, sink: &sink{seen: make(map[postrider.ID]bool)}}
	s.classicConfig = table.Config{Dialect: table.PostgreSQL, Layout: d.layout(t)}
	tabletest.Migrate(t, server, s.classicConfig)
	s.identity = identity(t, server)
	s.logConfig = pgtest.Schema(t, s.pool, postgres.Layout{})
	var err error
	if s.db, err = postgres.Open(s.pool, s.logConfig); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE keys (key text PRIMARY KEY, n bigint NOT NULL DEFAULT 0) WITH (fillfactor = 20)",
		fmt.Sprintf("INSERT INTO keys SELECT 'k' || i FROM generate_series(1, %d) i", keys),
	} {
		if _, err := s.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// member is a relay that can be killed.
type member struct {
	dead  atomic.Bool
	close func() // closes its connections
	sink  *sink
	name  string
	relay *relay.Relay

	fencedBefore int64 // shards that it had lost when it was killed
}

// excused reports whether the relay's deliveries may be duplicates: it was killed, or was so slow
// that its lease expired.
func (m *member) excused() bool { return m.dead.Load() || m.relay.Stats().Fenced > 0 }

// kill cuts a relay off from database and destination at once, as the end of its process would. It
// can then neither send nor record anything.
func (m *member) kill() {
	m.fencedBefore = m.relay.Stats().Fenced
	m.dead.Store(true)
	m.close()
}

// Publish implements [postrider.Publisher].
func (m *member) Publish(ctx context.Context, msgs []postrider.Message) []error {
	if m.dead.Load() {
		<-ctx.Done()
		return slices.Repeat([]error{ctx.Err()}, len(msgs))
	}
	m.sink.add(m.name, msgs)
	return nil
}

// KeepsOrder is true: each call is delivered as a whole.
func (m *member) KeepsOrder() bool { return true }

// Close implements [postrider.Publisher].
func (m *member) Close() error { return nil }

// classic starts a relay of the table.
func (s *shop) classic(name string) *member {
	s.t.Helper()
	db, err := sql.Open("pgx", s.server.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	opened, err := table.Open(db, s.classicConfig)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.run(opened.Feeds(), &member{name: name, sink: s.sink, close: func() { _ = db.Close() }}, "")
}

// log starts a relay of the log.
func (s *shop) log(name string) *member {
	s.t.Helper()
	pool, err := pgxpool.New(context.Background(), s.server.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	db, err := postgres.Open(pool, s.logConfig) // its connections end with it
	if err != nil {
		s.t.Fatal(err)
	}
	return s.run(db.Feeds(), &member{name: name, sink: s.sink, close: pool.Close}, "live")
}

func (s *shop) run(store feeds.Store, m *member, feed string) *member {
	s.t.Helper()
	r, err := relay.New(store, m, relay.Config{
		Feed: feed, Name: m.name, Lease: 2 * time.Second, BalanceInterval: 200 * time.Millisecond, DrainTimeout: time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	m.relay = r
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !m.dead.Load() {
			s.t.Errorf("%s: %v", m.name, err)
		}
		m.close()
	})
	return m
}

// sink is the destination. It records what arrives, in what order, from which relay and how late.
type sink struct {
	mu    sync.Mutex
	list  []history.Delivery
	seen  map[postrider.ID]bool
	delay []time.Duration // of messages from the log
}

type body struct {
	N  int64  `json:"n"`
	Of string `json:"of"`
	At int64  `json:"at"` // time of the write, in nanoseconds
}

func (k *sink) add(process string, msgs []postrider.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for i := range msgs {
		var b body
		if err := json.Unmarshal(msgs[i].Payload, &b); err != nil {
			panic(err)
		}
		k.list = append(k.list, history.Delivery{ID: msgs[i].ID, Key: b.Of, N: b.N, Process: process})
		if !k.seen[msgs[i].ID] {
			k.seen[msgs[i].ID] = true
			if strings.HasPrefix(process, "log") {
				k.delay = append(k.delay, now.Sub(time.Unix(0, b.At)))
			}
		}
	}
}

func (k *sink) deliveries() []history.Delivery {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.list)
}

// different returns the number of distinct messages that have arrived.
func (k *sink) different() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen)
}

// from returns the number of deliveries from relays whose names have the prefix.
func (k *sink) from(prefix string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.list {
		if strings.HasPrefix(k.list[i].Process, prefix) {
			n++
		}
	}
	return n
}

// worst returns a quantile of the delays of messages from the log.
func (k *sink) worst(share float64) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.delay) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(k.delay))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

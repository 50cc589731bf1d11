package unitofwork_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/unitofwork"
)

// scene is a schema with one application table, and a pool that reaches it through a proxy.
type scene struct {
	t       *testing.T
	direct  *pgxpool.Pool
	proxied *pgxpool.Pool
	proxy   *proxy
	cfg     postgres.Config
	db      *postgres.DB // direct
}

func newScene(t *testing.T, dsn string) *scene {
	t.Helper()
	s := &scene{t: t, direct: pgtest.Pool(t, dsn)}
	s.cfg = pgtest.Schema(t, s.direct, postgres.Layout{Shards: 4})
	// No constraint, so that duplicates are visible.
	s.exec("CREATE TABLE @.orders (id text)")
	at := s.direct.Config().ConnConfig
	s.proxy = listen(t, fmt.Sprintf("%s:%d", at.Host, at.Port))
	through := s.direct.Config()
	through.ConnConfig.Host, through.ConnConfig.Port = split(s.proxy.listener.Addr().String())
	through.ConnConfig.Fallbacks = nil
	var err error
	if s.db, err = postgres.Open(s.direct, s.cfg); err != nil {
		t.Fatal(err)
	}
	if s.proxied, err = pgxpool.NewWithConfig(t.Context(), through); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.proxied.Close)
	return s
}

func split(address string) (host string, port uint16) {
	host, text, _ := strings.Cut(address, ":")
	_, _ = fmt.Sscan(text, &port)
	return host, port
}

// work returns units of work through the proxy.
func (s *scene) work(change func(*postgres.Config)) *unitofwork.Work[pgx.Tx] {
	s.t.Helper()
	cfg := s.cfg
	if change != nil {
		change(&cfg)
	}
	proxied, err := postgres.Open(s.proxied, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return unitofwork.New(proxied.Transactor(), s.db.Outbox())
}

func (s *scene) in(sql string) string { return strings.ReplaceAll(sql, "@.", s.cfg.Schema+".") }

func (s *scene) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.direct.Exec(s.t.Context(), s.in(sql), args...); err != nil {
		s.t.Fatal(err)
	}
}

// counts returns how often each order exists.
func (s *scene) counts(sql string) map[string]int {
	s.t.Helper()
	rows, err := s.direct.Query(s.t.Context(), s.in(sql))
	if err != nil {
		s.t.Fatal(err)
	}
	counts := make(map[string]int)
	var id string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		counts[id] = n
		return nil
	}); err != nil {
		s.t.Fatal(err)
	}
	return counts
}

func (s *scene) rows() map[string]int {
	s.t.Helper()
	return s.counts("SELECT id, count(*) FROM @.orders GROUP BY id")
}

func (s *scene) messages() map[string]int {
	s.t.Helper()
	return s.counts("SELECT aggregate_id, count(*) FROM @.messages WHERE type = 'order.placed' GROUP BY aggregate_id")
}

// order is an aggregate.
type order struct {
	unitofwork.Events
	id string
}

func (o *order) place() {
	o.Record(postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: o.id}, nil))
}

// insert inserts an order in a transaction, with any driver.
type insert[Tx any] func(ctx context.Context, tx Tx, sql, id string) error

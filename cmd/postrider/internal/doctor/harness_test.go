package doctor

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// house is a healthy log with one feed that a relay serves.
type house struct {
	t     *testing.T
	admin *pgxpool.Pool
	*target
}

func newHouse(t *testing.T, dsn string) *house {
	t.Helper()
	h := &house{t: t, admin: pgtest.Pool(t, dsn)}
	pool := h.admin
	cfg := pgtest.Schema(t, pool, postgres.Layout{Shards: 2, Slots: 3})
	schema := cfg.Schema
	pgtest.DropRoles(t, pool, schema)
	db, err := postgres.Open(pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	migrator, err := db.Migrator(postgres.Layout{})
	if err == nil {
		err = migrator.Roles(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	h.target = newTarget(Database{Pool: pool, Schema: schema, Flags: " --schema " + schema})
	h.exec("SELECT @schema@.open_feed('default')")
	h.exec("SELECT @schema@.balance('default', gen_random_uuid(), 'test', '10 minutes')")
	return h
}

var databases atomic.Int64

// newDatabase creates a database on the same server, for faults that concern all of it, and returns its address.
func newDatabase(t *testing.T, dsn, options string) string {
	t.Helper()
	admin := pgtest.Pool(t, dsn)
	name := fmt.Sprintf("doctor%d_%d", os.Getpid(), databases.Add(1))
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name+" "+options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func (h *house) adminExec(sql string) {
	h.t.Helper()
	if _, err := h.admin.Exec(context.Background(), sql); err != nil {
		h.t.Error(err)
	}
}

// exec runs statements with @schema@ and @name@, the bare name, replaced.
func (h *house) exec(sql string) {
	h.t.Helper()
	sql = strings.ReplaceAll(h.in(sql), "@name@", h.Schema)
	if _, err := h.Pool.Exec(h.t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		h.t.Fatalf("%s: %v", sql, err)
	}
}

// begin runs a statement in a transaction that stays open until the test ends.
func (h *house) begin(sql string) {
	h.t.Helper()
	tx, err := h.Pool.Begin(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { tx.Rollback(context.Background()) })
	if _, err := tx.Exec(h.t.Context(), h.in(sql)); err != nil {
		h.t.Fatal(err)
	}
}

// as examines with the rights of a role.
func (h *house) as(role string) {
	h.t.Helper()
	cfg := h.Pool.Config()
	cfg.ConnConfig.RuntimeParams["role"] = role
	pool, err := pgxpool.NewWithConfig(h.t.Context(), cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(pool.Close)
	h.Pool = pool
}

// file makes the feeds of a configuration file known to the examination.
func (h *house) file(feeds string) {
	h.t.Helper()
	text := "databases: {app: {url: host=h}}\ndestinations: {d: {url: 'discard:'}}\nfeeds: " + feeds + "\n"
	f, err := config.Parse("p.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		h.t.Fatal(err)
	}
	for name := range f.Feeds {
		plan, err := f.Feed(name)
		if err != nil {
			h.t.Fatal(err)
		}
		h.Feeds = append(h.Feeds, plan)
	}
	h.HasFile = true
}

// deferMessage adds a deferred message.
func (h *house) deferMessage(status, available string) {
	h.t.Helper()
	h.exec(`INSERT INTO @schema@.deferred (feed, seq, shard, status, blocking, available_at, priority, id, type, schema_version,
		  created_at, occurred_at, payload)
		VALUES ('default', 1, 0, '` + status + `', true, ` + available + `, 0, gen_random_uuid(), 't', 1, now(), now(), '')`)
}

// found examines and returns what is not ok, by check.
func (h *house) found() map[string][]Finding {
	h.t.Helper()
	return byCheck(run(h.t.Context(), []*target{h.target}, nil))
}

func byCheck(findings []Finding) map[string][]Finding {
	all := map[string][]Finding{}
	for _, f := range findings {
		if f.Severity != OK {
			all[f.Check] = append(all[f.Check], f)
		}
	}
	return all
}

package table_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/storetest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/mysql"
	"github.com/postrider/postrider/store/table/tabletest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			s := open(t)
			cfg := table.Config{Dialect: s.Dialect}
			tabletest.Migrate(t, s, cfg)
			return storetest.Harness{
				Store:   newStore(t, s, cfg),
				Shards:  8,
				OneFeed: true,
				Begin:   func(t *testing.T) storetest.Tx { return begin(t, s, cfg) },
				Admin:   newAdmin(t, s, cfg),
			}
		})
	})
}

func newStore(t testing.TB, s tabletest.Server, cfg table.Config) feedStore {
	t.Helper()
	return must(table.Open(s.DB, cfg))(t).Feeds().(feedStore)
}

// feedStore is what relays use.
type feedStore interface {
	feeds.Store
	feeds.Maintainer
	feeds.Canary
}

func newAdmin(t testing.TB, s tabletest.Server, cfg table.Config) *table.Admin {
	t.Helper()
	return must(table.Open(s.DB, cfg))(t).Admin()
}

// tx joins an outbox and a transaction for the suite.
type tx struct {
	*sql.Tx
	outbox postrider.Outbox[*sql.Tx]
}

func begin(t testing.TB, s tabletest.Server, cfg table.Config) *tx {
	t.Helper()
	outbox := must(must(table.Open(s.DB, cfg))(t).Outbox())(t)
	began, err := s.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &tx{began, outbox}
}

func (x *tx) Enqueue(ctx context.Context, msgs ...postrider.Message) error {
	return x.outbox.Enqueue(ctx, x.Tx, msgs...)
}

func (x *tx) Offer(ctx context.Context, msgs ...postrider.Message) ([]int, error) {
	return x.outbox.Offer(ctx, x.Tx, msgs...)
}

// TestAutocommitOff: a session in which every statement begins a transaction would neither see what is committed later nor keep what it
// writes. It is refused with the remedy, and an address of ours is not affected.
func TestAutocommitOff(t *testing.T) {
	t.Parallel()
	s := tabletest.MariaDB(t)
	tabletest.Migrate(t, s, table.Config{Dialect: table.MySQL})
	cfg := must(driver.ParseDSN(s.Address))(t)
	cfg.Params = map[string]string{"autocommit": "0"}
	db := sql.OpenDB(must(driver.NewConnector(cfg))(t))
	defer db.Close()
	_, err := newStore(t, tabletest.Server{DB: db}, table.Config{Dialect: table.MySQL}).Open(t.Context(), "default", feeds.Member{Lease: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "autocommit=1") {
		t.Errorf("got %v", err)
	}
	ours := must(mysql.ParseURL("mysql://" + cfg.User + "@127.0.0.1/" + cfg.DBName))(t)
	if ours.Params["autocommit"] != "1" {
		t.Errorf("sessions of an address begin with %v", ours.Params)
	}
}

// TestPurgeOfNothing: a table without an index for it is not searched again and again for what is out of its retention.
func TestPurgeOfNothing(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		s.DB.SetMaxOpenConns(1) // so that the session which purges is the one that counts
		tabletest.Migrate(t, s, table.Config{})
		literal := &literalTables[0]
		p := adoptLiteral(t, s, literal)
		for range 12 {
			mustExec(t, s.DB, doubling(t, s, literal.name))
		}
		mustExec(t, s.DB, "UPDATE outbox_events SET status = 'published', published_at = now()")
		store := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: p.Layout, Retention: 24 * time.Hour})
		var looked []int64
		for range 3 {
			before := rowsRead(t, s, literal.name)
			if err := store.Maintain(t.Context()); err != nil {
				t.Fatal(err)
			}
			looked = append(looked, rowsRead(t, s, literal.name)-before)
		}
		if looked[0] < 4096 || looked[1]+looked[2] > 1000 {
			t.Errorf("three calls have looked at %d rows", looked)
		}
		old := "UPDATE outbox_events SET published_at = '2020-01-01 00:00:00'"
		mustExec(t, s.DB, old)
		again := newStore(t, s, table.Config{Dialect: s.Dialect, Layout: p.Layout, Retention: 24 * time.Hour})
		if err := again.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := s.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM outbox_events").Scan(&left); err != nil || left > 0 {
			t.Errorf("%d rows are left, and %v", left, err)
		}
	})
}

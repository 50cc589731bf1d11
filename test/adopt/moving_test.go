package adopt_test

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt/tolog"
	"github.com/postrider/postrider/store/table/tabletest"
)

// moving is a move of a described table to the log.
type moving struct {
	*tolog.Move
	cfg    table.Config
	log    postgres.Config
	outbox postrider.Outbox[*sql.Tx]
	server tabletest.Server
}

func move(t *testing.T, d described, server tabletest.Server) *moving {
	t.Helper()
	return moveLayout(t, d.layout(t), server)
}

func moveLayout(t *testing.T, layout table.Layout, server tabletest.Server) *moving {
	t.Helper()
	pool := pgtest.Pool(t, server.Address)
	m := &moving{cfg: table.Config{Dialect: table.PostgreSQL, Layout: layout}, server: server}
	tabletest.Migrate(t, server, m.cfg)
	m.log = pgtest.Schema(t, pool, postgres.Layout{})
	var err error
	if m.Move, err = tolog.New(pool, tolog.Config{Classic: m.cfg, Log: m.log}); err != nil {
		t.Fatal(err)
	}
	db, err := postgres.OpenSQL(server.DB, m.log)
	if err != nil {
		t.Fatal(err)
	}
	m.outbox = db.Outbox()
	return m
}

// id returns the message ID of a row.
func (m *moving) id(t *testing.T, rowID string) postrider.ID {
	t.Helper()
	if id, err := postrider.ParseID(rowID); err == nil {
		return id
	}
	return table.DerivedID(identity(t, m.server), m.cfg.Layout.Table, rowID)
}

// relay runs a relay on the log.
func (m *moving) relay(t *testing.T, pub postrider.Publisher) {
	t.Helper()
	db, err := postgres.Open(pgtest.Pool(t, m.server.Address), m.log)
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.New(db.Feeds(), pub, relay.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// caught records what is sent.
type caught struct {
	mu   sync.Mutex
	msgs []postrider.Message
}

func (c *caught) Publish(_ context.Context, msgs []postrider.Message) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.msgs = append(c.msgs, msgs...)
	return nil
}

func (c *caught) KeepsOrder() bool { return true }
func (c *caught) Close() error     { return nil }

func (c *caught) all() []postrider.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]postrider.Message(nil), c.msgs...)
}

package trial

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/test/proof/peers/peer"
)

// database is new for each trial. Its sessions are identified by their processes, in order to
// separate the server's work for producers from its work for the relay.
type database struct {
	dsn       string
	name      string
	admin     *pgxpool.Pool // ours: not counted as producers
	producers *pgxpool.Pool
	server    int // the parent process of all sessions

	mu     sync.Mutex
	ours   map[int]bool
	makers map[int]bool // the producers' sessions
}

// business lists the tables that producers write beside their messages.
var business = []string{
	`CREATE TABLE orders (
		id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		customer   bigint      NOT NULL,
		cents      bigint      NOT NULL,
		created_at timestamptz NOT NULL DEFAULT now()
	)`,
	"CREATE TABLE accounts (id bigint PRIMARY KEY, seq bigint NOT NULL)",
}

// createDatabase creates an empty database on a server on the same machine as this process.
func createDatabase(ctx context.Context, server, name string, writers int) (d *database, err error) {
	address, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	if err := administer(ctx, server, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = administer(context.WithoutCancel(ctx), server, "DROP DATABASE "+name+" WITH (FORCE)")
		}
	}()
	address.Path = "/" + name
	d = &database{dsn: address.String(), name: name, ours: map[int]bool{}, makers: map[int]bool{}}
	if d.admin, err = d.pool(ctx, 4, d.ours); err != nil {
		return nil, err
	}
	if d.producers, err = d.pool(ctx, writers, d.makers); err != nil {
		return nil, err
	}
	var pid int
	if err := d.admin.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return nil, err
	}
	table, err := processes()
	if err != nil {
		return nil, err
	}
	if d.server = table[pid].parent; d.server == 0 {
		return nil, fmt.Errorf("trial: the server's process %d is not on this machine", pid)
	}
	for _, sql := range business {
		if _, err := d.admin.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// pool opens connections and records their sessions.
func (d *database) pool(ctx context.Context, size int, note map[int]bool) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(size), int32(size)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		note[int(conn.PgConn().PID())] = true
		return nil
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// drop terminates all sessions and removes the database, even if the trial was interrupted.
func (d *database) drop(ctx context.Context, server string, p peer.Peer, j peer.Job) error {
	ctx = context.WithoutCancel(ctx)
	d.producers.Close()
	if p != nil {
		if err := p.Clear(ctx, d.admin, j); err != nil {
			return err
		}
	}
	d.admin.Close()
	return administer(ctx, server, "DROP DATABASE "+d.name+" WITH (FORCE)")
}

func administer(ctx context.Context, server, sql string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// hold begins a transaction that keeps vacuum from removing anything, and that delays readers that
// wait for old transactions. The caller ends it.
func (d *database) hold(ctx context.Context) (release func(), err error) {
	tx, err := d.admin.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
		return nil, err
	}
	return func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }, nil
}

package bench

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/mysql"
)

// classicEngine is the classic engine, with its tables in a schema or database with the lab's name.
type classicEngine struct {
	lab     *Lab
	dialect table.Dialect
	connect func(connections int) (*sql.DB, error)
}

// classicHere returns the classic engine on the lab's server.
func (l *Lab) classicHere() *classicEngine {
	return &classicEngine{l, table.PostgreSQL, func(connections int) (*sql.DB, error) {
		db := stdlib.OpenDB(*l.config.ConnConfig.Copy())
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		return db, nil
	}}
}

// classicAt returns the classic engine on a MySQL or MariaDB server.
func (l *Lab) classicAt(address string) *classicEngine {
	return &classicEngine{l, table.MySQL, func(connections int) (*sql.DB, error) {
		db, err := mysql.OpenURL(address)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(connections)
		return db, nil
	}}
}

func (e *classicEngine) config() table.Config {
	return table.Config{Dialect: e.dialect, Schema: e.lab.schema}
}

// in inserts the schema's name and the dialect's placeholders into a statement.
func (e *classicEngine) in(statement, schema string) string {
	if e.dialect == table.MySQL {
		return fmt.Sprintf(statement, "`"+schema+"`", "AUTO_INCREMENT", "?", "?")
	}
	return fmt.Sprintf(statement, `"`+schema+`"`, "GENERATED ALWAYS AS IDENTITY", "$1", "$2")
}

// layOut creates the tables. It returns a function that removes what closing the lab does not.
func (e *classicEngine) layOut(ctx context.Context) (remove func(context.Context) error, err error) {
	db, err := e.connect(1)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // nothing is lost
	remove = func(context.Context) error { return nil }
	statements := []string{e.in("CREATE TABLE %[1]s.classic_orders (id bigint NOT NULL %[2]s PRIMARY KEY, customer bigint NOT NULL,"+
		" cents bigint NOT NULL, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)", e.lab.schema)}
	if e.dialect == table.MySQL {
		statements = append([]string{"CREATE DATABASE `" + e.lab.schema + "`"}, statements...)
		remove = e.removeDatabase
	}
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return remove, err
		}
	}
	opened, err := table.Open(db, e.config())
	if err != nil {
		return remove, err
	}
	_, err = opened.Migrator().Up(ctx)
	return remove, err
}

func (e *classicEngine) removeDatabase(ctx context.Context) error {
	db, err := e.connect(1)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is lost
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err = db.ExecContext(ctx, "DROP DATABASE `"+e.lab.schema+"`")
	return err
}

type classicShop struct {
	db     *sql.DB
	outbox postrider.Outbox[*sql.Tx]
	insert string
}

func (e *classicEngine) hire(_ context.Context, writers int) (shop, error) {
	db, err := e.connect(writers)
	if err != nil {
		return nil, err
	}
	opened, err := table.Open(db, e.config())
	if err != nil {
		return nil, err
	}
	outbox, err := opened.Outbox()
	if err != nil {
		return nil, err
	}
	return &classicShop{db, outbox, e.in("INSERT INTO %[1]s.classic_orders (customer, cents) VALUES (%[3]s, %[4]s)", e.lab.schema)}, nil
}

func (c *classicShop) close() { _ = c.db.Close() }

func (c *classicShop) commit(ctx context.Context, order, number int64, m postrider.Message) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing, after an error the first error counts
	if _, err := tx.ExecContext(ctx, c.insert, order, number); err != nil {
		return err
	}
	if err := c.outbox.Enqueue(ctx, tx, m); err != nil {
		return err
	}
	return tx.Commit()
}

func (e *classicEngine) open(context.Context) (feeds.Store, func(), error) {
	db, err := e.connect(relayConnections)
	if err != nil {
		return nil, nil, err
	}
	opened, err := table.Open(db, e.config())
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return opened.Feeds(), func() { _ = db.Close() }, nil
}

// fill enqueues messages with the numbers from first up to but not including end.
func (e *classicEngine) fill(ctx context.Context, first, end int64) error {
	const step = 500
	shop, err := e.hire(ctx, 1)
	if err != nil {
		return err
	}
	defer shop.close()
	c := shop.(*classicShop) //nolint:errcheck // this engine has no other
	block := noise(1<<16 + e.lab.Payload)
	for from := first; from < end; from += step {
		e.lab.progressf("filling: %d of %d messages", from-first, end-first)
		var msgs []postrider.Message
		for n := from; n < min(from+step, end); n++ {
			payload := make([]byte, e.lab.Payload)
			copy(payload, block[n*7919%(1<<16):])
			binary.BigEndian.PutUint64(payload, uint64(n))
			msgs = append(msgs, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: strconv.FormatInt(n%int64(e.lab.Keys), 10)}, payload))
		}
		tx, err := c.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := c.outbox.Enqueue(ctx, tx, msgs...); err != nil {
			_ = tx.Rollback()
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// hold begins a transaction that prevents the removal of old row versions, and returns a function
// to end it.
func (e *classicEngine) hold(ctx context.Context) (release func() error, err error) {
	db, err := e.connect(1)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err == nil {
		var n int64 // the first statement takes the snapshot
		err = tx.QueryRowContext(ctx, e.in("SELECT count(*) FROM (SELECT 1 FROM %[1]s.classic_orders LIMIT 1) o", e.lab.schema)).Scan(&n)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return func() error {
		err := tx.Rollback()
		_ = db.Close()
		return err
	}, nil
}

// waste returns the number of old row versions that the server has not removed yet.
func (e *classicEngine) waste(ctx context.Context) (n int64, err error) {
	db, err := e.connect(1)
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // nothing is lost
	if e.dialect == table.MySQL {
		err = db.QueryRowContext(ctx, "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'").Scan(&n)
		return n, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables
		WHERE schemaname = $1 AND relname LIKE 'postrider\_%'`, e.lab.schema).Scan(&n)
	return n, err
}

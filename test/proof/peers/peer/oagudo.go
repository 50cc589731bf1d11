package peer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	outbox "github.com/oagudo/outbox"

	"github.com/postrider/postrider/test/proof/peers/broker"
)

// oagudo is the library github.com/oagudo/outbox, with one reader: its FAQ advises against more.
type oagudo struct{ inside }

const oagudoInterval = 10 * time.Second

func (oagudo) Name() string { return "oagudo-outbox" }

func (oagudo) Version(Programs) (string, error) { return module("github.com/oagudo/outbox") }

func (oagudo) Settings(j Job) []Setting {
	settings := []Setting{j.poll("WithInterval", oagudoInterval)}
	if !j.Stock {
		settings = append(settings,
			Setting{Name: "WithReadBatchSize", Value: "200", Default: "100; its README shows 200"},
			Setting{Name: "WithDeleteBatchSize", Value: "50", Default: "20; its README shows 50"})
	}
	return append(settings, Setting{Name: "readers", Value: "1"})
}

// Setup creates the table of its README.
func (oagudo) Setup(ctx context.Context, db *pgxpool.Pool, _ Job) (Enqueue, error) {
	err := execute(ctx, db,
		`CREATE TABLE outbox (
			id              uuid        PRIMARY KEY,
			created_at      timestamptz NOT NULL,
			scheduled_at    timestamptz NOT NULL,
			metadata        bytea,
			payload         bytea       NOT NULL,
			times_attempted integer     NOT NULL
		)`,
		"CREATE INDEX idx_outbox_created_at ON outbox (created_at)",
		"CREATE INDEX idx_outbox_scheduled_at ON outbox (scheduled_at)")
	writer := outbox.NewWriter(outbox.NewDBContext(stdlib.OpenDBFromPool(db), outbox.SQLDialectPostgres)).Unmanaged()
	return func(ctx context.Context, tx pgx.Tx, msgs ...Message) error {
		for _, m := range msgs {
			metadata, err := json.Marshal(m.Key)
			if err != nil {
				return err
			}
			if err := writer.Store(ctx, pgxTx{tx}, outbox.NewMessage(m.Payload, outbox.WithID(m.ID), outbox.WithMetadata(metadata))); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// pgxTx lets it write in a transaction of pgx, as all others do.
type pgxTx struct{ pgx.Tx }

type pgxResult struct{ pgconn.CommandTag }

// LastInsertId implements [sql.Result].
func (pgxResult) LastInsertId() (int64, error) { return 0, errors.ErrUnsupported }

// RowsAffected implements [sql.Result].
func (r pgxResult) RowsAffected() (int64, error) { return r.CommandTag.RowsAffected(), nil }

// ExecContext implements [outbox.TxQueryer]. Writing needs only this method.
func (t pgxTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	tag, err := t.Exec(ctx, query, args...)
	return pgxResult{tag}, err
}

// QueryContext implements [outbox.TxQueryer].
func (pgxTx) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errors.ErrUnsupported
}

// QueryRowContext implements [outbox.TxQueryer].
func (pgxTx) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }

type oagudoPublisher struct {
	to    broker.Broker
	topic string
}

// Publish implements [outbox.MessagePublisher].
func (p oagudoPublisher) Publish(ctx context.Context, m *outbox.Message) error {
	var key string
	if err := json.Unmarshal(m.Metadata, &key); err != nil {
		return err
	}
	return p.to.Send(ctx, p.topic, broker.Message{ID: m.ID.String(), Key: key, Payload: m.Payload})
}

func (oagudo) run(ctx context.Context, db *pgxpool.Pool, j Job) error {
	to, err := broker.Open(ctx, j.Broker, j.Address)
	if err != nil {
		return err
	}
	defer to.Close()
	options := []outbox.ReaderOption{outbox.WithInterval(j.interval(oagudoInterval))}
	if !j.Stock {
		options = append(options, outbox.WithReadBatchSize(200), outbox.WithDeleteBatchSize(50))
	}
	reader := outbox.NewReader(outbox.NewDBContext(stdlib.OpenDBFromPool(db), outbox.SQLDialectPostgres),
		oagudoPublisher{to, j.Topic}, options...)
	reader.Start()
	go func() {
		for err := range reader.Errors() {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return reader.Stop(stop)
}

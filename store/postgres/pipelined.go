package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const beginReadCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

// pipelined is a transaction whose BEGIN was sent together with its first statement: one round trip less than pgx's own, which
// for a handler with one statement is a quarter of its time on the network.
type pipelined struct {
	conn   *pgxpool.Conn
	closed bool
	depth  int // savepoints that were made
}

var _ pgx.Tx = (*pipelined)(nil)

func beginPipelined(ctx context.Context, pool *pgxpool.Pool, sql string, args []any, returns bool) (_ *pipelined, affected int64, texts []string, _ error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	tx := &pipelined{conn: conn}
	var batch pgx.Batch
	batch.Queue(beginReadCommitted)
	batch.Queue(sql, args...)
	results := conn.SendBatch(ctx, &batch)
	_, err = results.Exec()
	switch {
	case err != nil:
	case returns:
		rows, _ := results.Query() // an error of it is that of the rows
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		affected = int64(len(texts))
	default:
		var tag pgconn.CommandTag
		tag, err = results.Exec()
		affected = tag.RowsAffected()
	}
	if closing := results.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = tx.Rollback(ctx)
		return nil, 0, nil, err
	}
	return tx, affected, texts, nil
}

// Commit implements [pgx.Tx].
func (t *pipelined) Commit(ctx context.Context) error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	defer t.release()
	tag, err := t.conn.Exec(ctx, "COMMIT")
	if err != nil {
		if t.conn.Conn().PgConn().TxStatus() != 'I' {
			_ = t.conn.Conn().Close(ctx)
		}
		return err
	}
	if tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// Rollback implements [pgx.Tx]. It is done in any case, also when ctx has ended.
func (t *pipelined) Rollback(ctx context.Context) error {
	if t.closed {
		return pgx.ErrTxClosed
	}
	defer t.release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	if t.conn.Conn().IsClosed() {
		return nil // the server has rolled back
	}
	_, err := t.conn.Exec(ctx, "ROLLBACK")
	if err != nil {
		_ = t.conn.Conn().Close(ctx) // with the connection goes the transaction
	}
	return err
}

func (t *pipelined) release() {
	t.closed = true
	t.conn.Release()
}

// Begin implements [pgx.Tx] with a savepoint.
func (t *pipelined) Begin(ctx context.Context) (pgx.Tx, error) {
	if t.closed {
		return nil, pgx.ErrTxClosed
	}
	t.depth++
	s := &savepoint{pipelined: t, name: fmt.Sprintf("postrider_%d", t.depth)}
	_, err := t.conn.Exec(ctx, "SAVEPOINT "+s.name)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CopyFrom implements [pgx.Tx].
func (t *pipelined) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error) {
	if t.closed {
		return 0, pgx.ErrTxClosed
	}
	return t.conn.CopyFrom(ctx, table, columns, rows)
}

// SendBatch implements [pgx.Tx].
func (t *pipelined) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.closed {
		return closedBatch{}
	}
	return t.conn.SendBatch(ctx, b)
}

// LargeObjects implements [pgx.Tx]. Only pgx can make them, so it is asked to begin once more, with a statement that does nothing.
func (t *pipelined) LargeObjects() pgx.LargeObjects {
	tx, err := t.conn.Conn().BeginTx(context.Background(), pgx.TxOptions{BeginQuery: "SELECT"})
	if err != nil {
		return pgx.LargeObjects{}
	}
	return tx.LargeObjects()
}

// Prepare implements [pgx.Tx].
func (t *pipelined) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if t.closed {
		return nil, pgx.ErrTxClosed
	}
	return t.conn.Conn().Prepare(ctx, name, sql)
}

// Exec implements [pgx.Tx].
func (t *pipelined) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if t.closed {
		return pgconn.CommandTag{}, pgx.ErrTxClosed
	}
	return t.conn.Exec(ctx, sql, args...)
}

// Query implements [pgx.Tx].
func (t *pipelined) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if t.closed {
		return nil, pgx.ErrTxClosed
	}
	return t.conn.Query(ctx, sql, args...)
}

// QueryRow implements [pgx.Tx].
func (t *pipelined) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if t.closed {
		return closedRow{}
	}
	return t.conn.QueryRow(ctx, sql, args...)
}

// Conn implements [pgx.Tx].
func (t *pipelined) Conn() *pgx.Conn { return t.conn.Conn() }

type closedRow struct{}

func (closedRow) Scan(...any) error { return pgx.ErrTxClosed }

type closedBatch struct{}

func (closedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, pgx.ErrTxClosed }
func (closedBatch) Query() (pgx.Rows, error)         { return nil, pgx.ErrTxClosed }
func (closedBatch) QueryRow() pgx.Row                { return closedRow{} }
func (closedBatch) Close() error                     { return pgx.ErrTxClosed }

// savepoint is a transaction inside of one.
type savepoint struct {
	*pipelined
	name string
	done bool
}

// Commit implements [pgx.Tx].
func (s *savepoint) Commit(ctx context.Context) error { return s.end(ctx, "RELEASE SAVEPOINT "+s.name) }

// Rollback implements [pgx.Tx].
func (s *savepoint) Rollback(ctx context.Context) error {
	return s.end(ctx, "ROLLBACK TO SAVEPOINT "+s.name)
}

func (s *savepoint) end(ctx context.Context, sql string) error {
	if s.done || s.closed {
		return pgx.ErrTxClosed
	}
	s.done = true
	_, err := s.conn.Exec(ctx, sql)
	return err
}

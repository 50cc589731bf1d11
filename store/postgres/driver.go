package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// statements sends statements through pgx or database/sql, inside or outside a transaction.
// Arguments and results have the types that every driver supports: string, int64, float64, bool,
// []byte, and pointers to them for NULL. Lists and times travel as JSON or text.
type statements interface {
	exec(ctx context.Context, sql string, args ...any) (affected int64, err error)
	// row scans the first row. It returns errNoRow if there is none.
	row(ctx context.Context, sql string, args []any, into ...any) error
	// rows scans each row into the same targets and then calls each.
	rows(ctx context.Context, sql string, args []any, into []any, each func() error) error
}

var errNoRow = errors.New("postgres: no row")

// transaction is a READ COMMITTED transaction that this package has begun, or one that the caller
// passed in. The latter has only tx and statements.
type transaction[Tx any] struct {
	statements
	tx       Tx
	commit   func(context.Context) error
	rollback func(context.Context) error // a no-op after commit
}

// database is what both drivers have in common. Its own statements run outside transactions.
type database[Tx any] interface {
	statements
	begin(ctx context.Context) (transaction[Tx], error)
	beginAt(ctx context.Context, level sql.IsolationLevel) (transaction[Tx], error)
	// beginWith begins a transaction with a statement, in one round trip where the driver supports
	// that. It returns the number of affected rows and, for a statement that returns one text
	// column, its values.
	beginWith(ctx context.Context, sql string, args []any, returns bool) (_ transaction[Tx], affected int64, texts []string, _ error)
	in(tx Tx) statements
}

var (
	_ database[pgx.Tx]  = pgxDatabase{}
	_ database[*sql.Tx] = sqlDatabase{}
)

// execAlone sends a statement without BEGIN. If the default isolation level of the database made it
// fail, because our function refused that level or because of a concurrent change, execAlone
// repeats it in a READ COMMITTED transaction.
func execAlone[Tx any](ctx context.Context, d database[Tx], alone statements, sql string, args []any) (n int64, err error) {
	if n, err = alone.exec(ctx, sql, args...); !otherLevel(err) {
		return n, err
	}
	err = inTransaction(ctx, d, func(t statements) (err error) {
		n, err = t.exec(ctx, sql, args...)
		return err
	})
	return n, err
}

// rowAlone is execAlone for a statement that returns a row.
func rowAlone[Tx any](ctx context.Context, d database[Tx], alone statements, sql string, args, into []any) error {
	err := alone.row(ctx, sql, args, into...)
	if !otherLevel(err) {
		return err
	}
	return inTransaction(ctx, d, func(t statements) error { return t.row(ctx, sql, args, into...) })
}

func otherLevel(err error) bool {
	code := state(err)
	return code == "40001" || code == "25001" // serialization_failure; active_sql_transaction, of check_isolation
}

func inTransaction[Tx any](ctx context.Context, d database[Tx], f func(statements) error) error {
	t, err := d.begin(ctx)
	if err != nil {
		return err
	}
	if err := f(t); err != nil {
		_ = t.rollback(ctx)
		return err
	}
	return t.commit(ctx)
}

type pgxDatabase struct {
	pgxStatements
	pool *pgxpool.Pool
}

func overPgx(pool *pgxpool.Pool) pgxDatabase { return pgxDatabase{pgxStatements{pool}, pool} }

func (d pgxDatabase) in(tx pgx.Tx) statements { return pgxStatements{tx} }

func (d pgxDatabase) exec(ctx context.Context, sql string, args ...any) (n int64, err error) {
	return execAlone(ctx, d, d.pgxStatements, sql, args)
}

func (d pgxDatabase) row(ctx context.Context, sql string, args []any, into ...any) error {
	return rowAlone(ctx, d, d.pgxStatements, sql, args, into)
}

func (d pgxDatabase) begin(ctx context.Context) (transaction[pgx.Tx], error) {
	return d.beginAt(ctx, sql.LevelReadCommitted)
}

var pgxLevels = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelReadCommitted: pgx.ReadCommitted, sql.LevelRepeatableRead: pgx.RepeatableRead, sql.LevelSerializable: pgx.Serializable,
}

func (d pgxDatabase) beginAt(ctx context.Context, level sql.IsolationLevel) (transaction[pgx.Tx], error) {
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgxLevels[level], AccessMode: pgx.ReadWrite})
	if err != nil {
		return transaction[pgx.Tx]{}, err
	}
	return transaction[pgx.Tx]{pgxStatements{tx}, tx, tx.Commit, tx.Rollback}, nil
}

// beginWith sends BEGIN together with the statement, which saves a round trip: a quarter of the
// network time of a handler with one statement.
func (d pgxDatabase) beginWith(ctx context.Context, sql string, args []any, returns bool) (_ transaction[pgx.Tx], affected int64, texts []string, err error) {
	var batch pgx.Batch
	batch.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	batch.Queue(sql, args...)
	results := d.pool.SendBatch(ctx, &batch)
	tx := results.Tx()
	// Roll back even if ctx has ended, but not for ever.
	rollback := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		return tx.Rollback(ctx)
	}
	_, err = results.Exec()
	switch {
	case err != nil:
	case returns:
		rows, _ := results.Query() // CollectRows returns its error
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
		_ = rollback(ctx)
		return transaction[pgx.Tx]{}, 0, nil, err
	}
	return transaction[pgx.Tx]{pgxStatements{tx}, tx, tx.Commit, rollback}, affected, texts, nil
}

type pgxStatements struct {
	db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}
}

func (s pgxStatements) exec(ctx context.Context, sql string, args ...any) (int64, error) {
	tag, err := s.db.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (s pgxStatements) row(ctx context.Context, sql string, args []any, into ...any) error {
	err := s.db.QueryRow(ctx, sql, args...).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoRow
	}
	return err
}

func (s pgxStatements) rows(ctx context.Context, sql string, args []any, into []any, each func() error) error {
	rows, err := s.db.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, each)
	return err
}

type sqlDatabase struct {
	sqlStatements
	db *sql.DB
}

func overSQL(db *sql.DB) sqlDatabase { return sqlDatabase{sqlStatements{db}, db} }

func (d sqlDatabase) in(tx *sql.Tx) statements { return sqlStatements{tx} }

func (d sqlDatabase) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	return execAlone(ctx, d, d.sqlStatements, statement, args)
}

func (d sqlDatabase) row(ctx context.Context, statement string, args []any, into ...any) error {
	return rowAlone(ctx, d, d.sqlStatements, statement, args, into)
}

func (d sqlDatabase) begin(ctx context.Context) (transaction[*sql.Tx], error) {
	return d.beginAt(ctx, sql.LevelReadCommitted)
}

// beginAt returns a transaction that database/sql rolls back when ctx ends. So ctx also bounds
// commit.
func (d sqlDatabase) beginAt(ctx context.Context, level sql.IsolationLevel) (transaction[*sql.Tx], error) {
	tx, err := d.db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return transaction[*sql.Tx]{}, err
	}
	return transaction[*sql.Tx]{
		sqlStatements{tx}, tx,
		func(context.Context) error { return tx.Commit() },
		func(context.Context) error { return tx.Rollback() },
	}, nil
}

func (d sqlDatabase) beginWith(ctx context.Context, statement string, args []any, returns bool) (_ transaction[*sql.Tx], affected int64, texts []string, _ error) {
	t, err := d.begin(ctx)
	if err != nil {
		return t, 0, nil, err
	}
	if returns {
		var text string
		err = t.rows(ctx, statement, args, []any{&text}, func() error { texts = append(texts, text); return nil })
		affected = int64(len(texts))
	} else {
		affected, err = t.exec(ctx, statement, args...)
	}
	if err != nil {
		_ = t.rollback(ctx)
		return transaction[*sql.Tx]{}, 0, nil, err
	}
	return t, affected, texts, nil
}

type sqlStatements struct {
	db interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
}

func (s sqlStatements) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := s.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s sqlStatements) row(ctx context.Context, statement string, args []any, into ...any) error {
	err := s.db.QueryRowContext(ctx, statement, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return errNoRow
	}
	return err
}

func (s sqlStatements) rows(ctx context.Context, statement string, args []any, into []any, each func() error) error {
	rows, err := s.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err says it
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
	}
	return rows.Err()
}

package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider/internal/retrying"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// marks are what the transactions of one program leave behind. Nil leaves nothing.
type marks struct {
	db      *sql.DB
	cfg     Config
	program [16]byte

	mu    sync.Mutex
	idle  []*mark
	slots int
	tidy  bool // what programs have left that are long gone was removed
}

func newMarks(db *sql.DB, cfg Config) *marks {
	m := &marks{db: db, cfg: cfg}
	_, _ = rand.Read(m.program[:]) // it never fails
	return m
}

// mark is one row, for one transaction at a time. The row holds -n as soon as the nth transaction has begun and n when all of it is
// done, both as that transaction sees it: others see n once it has committed. 0 means that somebody has found out that it has not.
type mark struct {
	of    *marks
	slot  int
	n     int64
	doubt bool // the fate of the last one is not known
}

// set begins a transaction's mark.
func (a *marks) set(ctx context.Context, tx *sql.Tx) (*mark, error) {
	if a == nil {
		return nil, nil
	}
	a.sweep(ctx)
	m := a.take()
	m.n++
	_, err := m.stmt("INSERT INTO {commits} (program, slot, mark, at) VALUES (").Word(string(a.program[:])).SQL(",").Number(int64(m.slot)).
		SQL(",").Number(-m.n).SQL(",{now}) ON DUPLICATE KEY UPDATE mark = ").Number(-m.n).SQL(", at = {now}").Exec(ctx, tx)
	if err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

func (m *mark) stmt(text string) *sqltext.Stmt { return m.of.cfg.stmt(text) }

// here ends a statement with the mark's row.
func here(m *mark) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		return s.SQL(" WHERE program = ").Word(string(m.of.program[:])).SQL(" AND slot = ").Number(int64(m.slot))
	}
}

// confirm completes the mark, last of all. It finds the row as the transaction has left it, unless that has ended meanwhile.
func (m *mark) confirm(ctx context.Context, tx *sql.Tx) error {
	if m == nil {
		return nil
	}
	result, err := m.stmt("UPDATE {commits} SET mark = ").Number(m.n).Add(here(m)).SQL(" AND mark = ").Number(-m.n).Exec(ctx, tx)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errEnded, err)
	}
	return nil
}

// askAgain is how often the server is asked what became of a COMMIT.
var askAgain = retry.Policy{First: 5 * time.Millisecond, Most: 500 * time.Millisecond}

// resolve finds out whether the transaction has committed. It returns the doubt that is left.
func (m *mark) resolve(ctx context.Context, patience time.Duration) (committed bool, doubt error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for n := 1; ; n++ {
		if committed, doubt = m.ask(ctx); doubt == nil {
			return committed, nil
		}
		if !retrying.Pause(ctx, askAgain, n) {
			m.doubt = true
			return false, fmt.Errorf("asked %d times in %v: %w", n, patience, doubt)
		}
	}
}

// ask waits for the end of the transaction and looks at what it has left. If that is nothing, it says so in the row: a server that
// takes no writes, and one of a cluster that is behind, cannot, and so cannot mislead us.
func (m *mark) ask(ctx context.Context) (committed bool, err error) {
	err = sqltext.Once(ctx, m.of.db, func(tx *sql.Tx) error {
		var found int64
		err := m.stmt("SELECT mark FROM {commits}").Add(here(m)).SQL(" FOR UPDATE").Row(ctx, tx).Scan(&found)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if committed = err == nil && found == m.n; committed {
			return nil
		}
		_, err = m.stmt("INSERT INTO {commits} (program, slot, mark, at) VALUES (").Word(string(m.of.program[:])).SQL(",").
			Number(int64(m.slot)).SQL(",0,{now}) ON DUPLICATE KEY UPDATE mark = 0, at = {now}").Exec(ctx, tx)
		return err
	})
	return committed, err
}

// free gives the row to the next transaction, unless it is still in doubt.
func (m *mark) free() {
	if m == nil || m.doubt {
		return
	}
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.idle = append(m.of.idle, m)
}

func (a *marks) take() *mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.idle); n > 0 {
		m := a.idle[n-1]
		a.idle = a.idle[:n-1]
		return m
	}
	a.slots++
	return &mark{of: a, slot: a.slots}
}

// sweep removes, once, the rows of programs that are long gone. A program that was idle for as long makes its rows again.
func (a *marks) sweep(ctx context.Context) {
	a.mu.Lock()
	tidy := a.tidy
	a.tidy = true
	a.mu.Unlock()
	if tidy {
		return
	}
	_ = sqltext.Once(ctx, a.db, func(tx *sql.Tx) error { // if it fails, another program does it
		var old []any
		err := a.cfg.stmt("SELECT program, slot FROM {commits} WHERE at < {now} - INTERVAL 1 DAY LIMIT 1000 FOR UPDATE SKIP LOCKED").
			Each(ctx, tx, func(scan func(...any) error) error {
				var program []byte
				var slot int64
				err := scan(&program, &slot)
				old = append(old, program, slot)
				return err
			})
		for i := 0; i < len(old) && err == nil; i += 2 {
			_, err = tx.ExecContext(ctx, a.cfg.own().In("DELETE FROM {commits} WHERE program = ? AND slot = ?"), old[i], old[i+1])
		}
		return err
	})
}

// isLost reports whether an error came between us and a server that we were connected to, which has not said a word about the
// statement.
func isLost(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	if errors.As(err, &op) {
		return true
	}
	switch number, _ := sqltext.Code(err); number {
	case 1053, 1317, 1927: // the server shuts down; interrupted; killed
		return true
	}
	return errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn)
}

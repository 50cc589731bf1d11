package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/store/transactor"
)

// wire is the network between a program and its database. It loses the next COMMIT, or the answer to it.
type wire struct {
	loseCommit, loseAnswer atomic.Bool
	closed                 atomic.Bool // nobody can connect any more
}

type wireConn struct {
	net.Conn
	wire *wire
	lost atomic.Bool
}

var errWire = errors.New("the wire is cut")

func (c *wireConn) Write(b []byte) (int, error) {
	if bytes.HasSuffix(b, []byte("COMMIT")) {
		if c.wire.loseCommit.CompareAndSwap(true, false) {
			_ = c.Close()
			return len(b), nil
		}
		if c.wire.loseAnswer.CompareAndSwap(true, false) {
			c.lost.Store(true)
		}
	}
	return c.Conn.Write(b)
}

func (c *wireConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lost.Load() {
		_ = c.Close()
		return 0, errWire
	}
	return n, err
}

// overWire opens the database of a server again, through a wire.
func overWire(t *testing.T, s tabletest.Server) (*sql.DB, *wire) {
	w := &wire{}
	cfg := must(driver.ParseDSN(s.Address))(t)
	name := "wire " + t.Name()
	driver.RegisterDialContext(name, func(ctx context.Context, address string) (net.Conn, error) {
		if w.closed.Load() {
			return nil, errWire
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return &wireConn{Conn: conn, wire: w}, err
	})
	t.Cleanup(func() { driver.DeregisterDialContext(name) })
	cfg.Net = name
	cfg.Logger = &driver.NopLogger{}
	db := sql.OpenDB(must(driver.NewConnector(cfg))(t))
	t.Cleanup(func() { _ = db.Close() })
	return db, w
}

// TestTransactorFindsOut holds that a COMMIT whose answer is lost is found to have happened, and one that never arrived is
// done again: the effect is there once, and the program knows.
func TestTransactorFindsOut(t *testing.T) {
	t.Parallel()
	s := tabletest.MariaDB(t)
	tabletest.Migrate(t, s, table.Config{})
	mustExec(t, s.DB, "CREATE TABLE effects (name varchar(20)) ENGINE = InnoDB")
	db, w := overWire(t, s)
	patient := newTransactor(t, db, transactor.Config{ResolveTimeout: 5 * time.Second})
	do := func(transactor postrider.Transactor[*sql.Tx], name string) (runs int, err error) {
		err = transactor.Do(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			runs++
			_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES ('"+name+"')")
			return err
		})
		return runs, err
	}
	effects := func(name string) int { return count(t, s.DB, "SELECT count(*) FROM effects WHERE name = '"+name+"'") }

	for range 3 {
		w.loseAnswer.Store(true)
		if runs, err := do(patient, "answer"); err != nil || runs != 1 || w.loseAnswer.Load() {
			t.Fatalf("the answer is lost: %d runs, %v", runs, err)
		}
		w.loseCommit.Store(true)
		if runs, err := do(patient, "commit"); err != nil || runs != 2 || w.loseCommit.Load() {
			t.Fatalf("the COMMIT is lost: %d runs, %v", runs, err)
		}
	}
	if a, c := effects("answer"), effects("commit"); a != 3 || c != 3 {
		t.Errorf("%d and %d effects, want 3 of each", a, c)
	}

	careless := newTransactor(t, db, transactor.Config{LeaveUncertain: true})
	w.loseAnswer.Store(true)
	if runs, err := do(careless, "careless"); !errors.Is(err, postrider.ErrUncertain) || runs != 1 {
		t.Errorf("nothing was noted: %d runs, %v", runs, err)
	}

	impatient := newTransactor(t, db, transactor.Config{ResolveTimeout: 50 * time.Millisecond})
	if runs, err := do(impatient, "first"); err != nil || runs != 1 {
		t.Fatal(runs, err)
	}
	db.SetMaxIdleConns(0) // every caller has to connect
	w.loseAnswer.Store(true)
	err := impatient.Do(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		w.closed.Store(true)
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES ('gone')")
		return err
	})
	if !errors.Is(err, postrider.ErrUncertain) {
		t.Errorf("nobody can be asked: %v", err)
	}
}

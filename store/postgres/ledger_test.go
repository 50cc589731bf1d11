package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestSettleOfAnEarlierGeneration verifies that a position read before the server crashed does not
// count afterwards: the server may have assigned its numbers and transaction IDs again.
func TestSettleOfAnEarlierGeneration(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 1})
		h.enqueue(3)
		s := h.sit("f")
		s.readAll()
		h.exec("UPDATE @.generation SET id = gen_random_uuid()")
		if _, err := s.Settle(t.Context(), s.marks()); !errors.Is(err, feeds.ErrReset) {
			t.Errorf("Settle: %v, want ErrReset", err)
		}
	})
}

// TestLostAnswerOfASettle verifies that a member whose settle succeeded, but whose answer was lost,
// keeps its shards and continues to settle.
func TestLostAnswerOfASettle(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		var deaf atomic.Bool
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return deafConn{conn, &deaf}, err
		}
		config.MaxConns = 1 // the statement is prepared on this connection, so the lost answer is that of its execution
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		h.store = openHouse(t, pool, h.cfg).store
		s := h.sit("f")
		s.settle()
		h.enqueue(10)
		s.readAll()
		before := h.number("SELECT sum(n) FROM @.cursors")
		happened := func() bool {
			for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
				if h.number("SELECT sum(n) FROM @.cursors") != before {
					return true
				}
			}
			return false
		}
		for attempt := 1; ; attempt++ {
			deaf.Store(true)
			if _, err := s.Settle(t.Context(), s.marks()); err == nil {
				t.Fatal("the answer was not lost")
			}
			deaf.Store(false)
			if happened() {
				break
			}
			if attempt == 10 { // the driver asks the server to cancel the statement that it gave up on, and a slow server may do so
				t.Fatal("the settle has not happened")
			}
		}
		s.settle() // fails if a shard is lost
		if n := s.balance(); len(n.Shards) != 2 {
			t.Errorf("the member holds %v, want both shards", n.Shards)
		}
		s.leave()
		expectTypes(t, "everything was settled", h.sit("f").readAll())
	})
}

// TestLeaseIsKept verifies that a member which has not settled for most of its lease keeps its
// shards, also if another member was heard in the meantime.
func TestLeaseIsKept(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		holder := h.sit("f")
		h.exec("UPDATE @.checkpoints SET at = at - interval '40 seconds', until = until - interval '40 seconds'") // of a lease of one minute
		other := h.sit("f")
		h.exec("UPDATE @.members SET at = at - interval '20 seconds'")
		if other.balance(); len(other.share.Shards) > 0 || other.share.Quota != 1 {
			t.Errorf("another member has %+v, want no shard", other.share)
		}
		holder.settle()
	})
}

// TestSweepLeavesTheFence verifies that a member which was suspended until the rows after its own
// were swept has still lost its shards.
func TestSweepLeavesTheFence(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{Shards: 2})
		old := h.sit("f")
		h.exec("UPDATE @.checkpoints SET at = at - interval '1 hour', until = until - interval '1 hour'")
		h.exec("UPDATE @.members SET at = at - interval '1 hour', until = until - interval '1 hour'")
		taker := h.sit("f")
		h.exec("UPDATE @.members SET at = at - interval '20 seconds'") // for so long it has been heard, and the owner has not
		taker.balance()
		if len(taker.share.Shards) != 2 {
			t.Fatalf("got %+v, want both shards", taker.share)
		}
		for range 3 {
			taker.settle()
		}
		h.exec("UPDATE @.checkpoints SET at = at - interval '1 hour'")
		if err := h.store.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lost, err := old.Settle(t.Context(), old.marks()); err != nil || len(lost) != 2 {
			t.Errorf("the old member has lost %v, want both shards; %v", lost, err)
		}
		taker.settle()
	})
}

// deafConn is a connection that closes instead of returning an answer.
type deafConn struct {
	net.Conn
	deaf *atomic.Bool
}

func (c deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

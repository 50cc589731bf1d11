package bench

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// trips counts the round trips of connections.
type trips struct{ atomic.Int64 }

// watch makes connections with this configuration count their round trips.
func (t *trips) watch(config *pgx.ConnConfig) {
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		return &countedConn{Conn: conn, trips: t}, nil
	}
}

// countedConn counts a round trip when the first bytes arrive after a write, independent of the
// number of writes and reads. It does not count unsolicited messages of the server.
type countedConn struct {
	net.Conn
	trips *trips
	asked atomic.Bool
}

// Write implements [net.Conn].
func (c *countedConn) Write(b []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(b)
}

// Read implements [net.Conn].
func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.asked.Swap(false) {
		c.trips.Add(1)
	}
	return n, err
}

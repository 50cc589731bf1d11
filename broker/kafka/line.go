package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// line is all connections of one producer. It knows what its client does not say: whether a produce request has begun
// to leave, and that the brokers cannot be reached. And it can keep produce requests from leaving.
type line struct {
	dial   dialFunc
	shut   atomic.Bool                             // no produce request may leave
	wrote  atomic.Bool                             // one has begun to leave since this was last cleared
	misses atomic.Int32                            // attempts to connect in a row that have failed
	broken atomic.Pointer[context.CancelCauseFunc] // is told when these are too many
}

func (l *line) open(ctx context.Context, network, address string) (net.Conn, error) {
	inner, err := l.dial(ctx, network, address)
	if err != nil {
		// One may be due to a broker that the others have already replaced.
		if broken := l.broken.Load(); l.misses.Add(1) >= 3 && broken != nil {
			(*broken)(err)
		}
		return nil, err
	}
	l.misses.Store(0)
	return &conn{inner, l}, nil
}

type conn struct {
	net.Conn
	line *line
}

// Write sends one request: the client hands each over in one piece. A produce request is known by its header: four
// bytes of length, and two for the kind, which is 0.
func (c *conn) Write(request []byte) (int, error) {
	if len(request) >= 6 && request[4] == 0 && request[5] == 0 {
		c.line.wrote.Store(true)
		if c.line.shut.Load() { // after the store: either this sees shut, or who has shut sees wrote
			return 0, errors.New("the connection was given up")
		}
	}
	return c.Conn.Write(request)
}

// Close ends the connection without the farewell of TLS, which could block.
func (c *conn) Close() error {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.NetConn().Close()
	}
	return c.Conn.Close()
}

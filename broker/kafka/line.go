package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
)

// line is all connections of one producer. It tracks what the client does not report: whether a
// produce request has begun to leave, and that the brokers cannot be reached. It can also block
// produce requests.
type line struct {
	dial   dialFunc
	shut   atomic.Bool                             // produce requests are blocked
	wrote  atomic.Bool                             // a produce request has begun to leave since this was cleared
	misses atomic.Int32                            // consecutive failed attempts to connect
	broken atomic.Pointer[context.CancelCauseFunc] // called after too many failed attempts
}

func (l *line) open(ctx context.Context, network, address string) (net.Conn, error) {
	inner, err := l.dial(ctx, network, address)
	if err != nil {
		// A single failure may be due to a broker that has already been replaced.
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

// Write sends one request: the client writes each in one piece. A produce request is recognised by
// its header: four bytes of length, then two bytes of kind 0.
func (c *conn) Write(request []byte) (int, error) {
	if len(request) >= 6 && request[4] == 0 && request[5] == 0 {
		c.line.wrote.Store(true)
		if c.line.shut.Load() { // after the store: either this sees shut, or the caller that set shut sees wrote
			return 0, errors.New("the connection was closed")
		}
	}
	return c.Conn.Write(request)
}

// Close closes the connection without a TLS close notification, which could block.
func (c *conn) Close() error {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.NetConn().Close()
	}
	return c.Conn.Close()
}

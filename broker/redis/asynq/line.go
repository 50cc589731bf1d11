package asynq

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// line is a client with a single connection. It adds what the client does not offer: whether a
// failed command can have reached the server, and aborting a wait when a context is cancelled. One
// goroutine uses it at a time.
type line struct {
	client *redis.Client

	mu    sync.Mutex
	conn  net.Conn // the newest
	ready bool     // the handshake on conn is complete and commands may be sent on it
}

// newLine returns a line that connects on first use.
func newLine(o *redis.Options) *line {
	l := &line{}
	own := *o
	own.PoolSize = 1
	own.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		l.set(nil, false)
		conn, err := o.Dialer(ctx, network, address)
		if err == nil {
			l.set(conn, false)
		}
		return conn, err
	}
	own.OnConnect = func(context.Context, *redis.Conn) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ready = true
		return nil
	}
	l.client = redis.NewClient(&own)
	return l
}

func (l *line) set(conn net.Conn, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.ready = conn, ready
}

// run calls f. When ctx ends, it closes the connection, so that f returns soon.
func (l *line) run(ctx context.Context, f func() error) error {
	var cut sync.WaitGroup
	cut.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer cut.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.conn != nil {
			_ = l.conn.Close()
		}
	})
	err := f()
	if !stop() {
		cut.Wait() // do not cut the connection of the next run
	}
	return err
}

// reached reports whether the newest connection got as far as sending commands. If not, the last
// failed command was not sent.
func (l *line) reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

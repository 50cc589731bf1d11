package asynq

import (
	"context"
	"net"
	"sync"

	"github.com/redis/go-redis/v9"
)

// line is a client with a single connection. It knows two things that the client alone does not tell: whether a command
// that failed can have reached the server, and how to stop waiting when a context is cancelled. One goroutine uses it at
// a time.
type line struct {
	client *redis.Client

	mu    sync.Mutex
	conn  net.Conn // the newest
	ready bool     // conn has been greeted: commands go out on it
}

// newLine returns a line that connects when it is first used.
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

// run calls f. When ctx ends, the connection is cut, so that f returns soon.
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
		cut.Wait() // the next run is not to blame
	}
	return err
}

// reached reports whether the newest connection has got as far as commands. If not, what failed last was not sent.
func (l *line) reached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

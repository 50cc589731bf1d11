package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// stuckTimeout is how long a call may wait for the server after its context has ended.
const stuckTimeout = time.Second

var errBlocked = errors.New("rabbitmq: the server takes no messages (connection.blocked): it lacks memory or disk")

// link is a session: a publisher's connection and its channels.
type link struct {
	*connection
	p       *Publisher
	lost    chan struct{}
	blocked atomic.Bool // by a resource alarm: the server does not read from the connection
	free    chan *channel

	mu     sync.Mutex
	closed bool // no goroutine is started any more
	run    sync.WaitGroup
}

func (p *Publisher) open(ctx context.Context) (*link, error) {
	conn, err := p.cfg.connect(ctx, "postrider publisher")
	if err != nil {
		return nil, err
	}
	l := &link{connection: conn, p: p, lost: make(chan struct{}), free: make(chan *channel, 64)}
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking))
	l.run.Go(func() {
		defer close(l.lost)
		for b := range blocked {
			l.blocked.Store(b.Active)
			if b.Active {
				p.cfg.Logger.Warn("rabbitmq: the server takes no messages", "reason", b.Reason)
			} else {
				p.cfg.Logger.Info("rabbitmq: the server takes messages again")
			}
		}
	})
	return l, nil
}

func (l *link) Lost() <-chan struct{} { return l.lost }

// Close closes the connection and waits for its goroutines.
func (l *link) Close() {
	if l.blocked.Load() {
		l.hangUp() // the server would not read a graceful close
	}
	l.connection.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.run.Wait()
}

// begin runs do in a goroutine that Close waits for. It returns false if the link is closed.
func (l *link) begin(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.run.Go(do)
	}
	return !l.closed
}

// guard closes the connection if a call still waits for the server long after its context has
// ended, because the client ignores the context. The call must call stop when it returns.
func (l *link) guard(ctx context.Context) (stop func()) {
	ended := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		select {
		case <-ended:
		case <-time.After(stuckTimeout):
			l.hangUp()
		}
	})
	return func() {
		unwatch()
		close(ended)
	}
}

// take returns a channel for exclusive use.
func (l *link) take() (*channel, error) {
	for !l.blocked.Load() {
		select {
		case one := <-l.free:
			if !one.ch.IsClosed() {
				return one, nil
			}
		default:
			one, err := l.newChannel()
			if err != nil {
				err = fmt.Errorf("rabbitmq: opening a channel: %v", err) //nolint:errorlint // not an exception about a message
			}
			return one, err
		}
	}
	return nil, errBlocked
}

// put returns a channel to the pool. An unusable channel is closed in the background.
func (l *link) put(one *channel) {
	if one.dead == nil {
		select {
		case l.free <- one:
			return
		default:
		}
	}
	l.begin(func() { _ = one.ch.Close() }) // otherwise the connection has closed it
}

// probe queries the server on a channel of its own, because a negative answer closes the channel.
func (l *link) probe(ask func(*amqp.Channel) error) error {
	ch, err := l.Channel()
	if err != nil {
		return err
	}
	if err := ask(ch); err != nil {
		return err
	}
	return ch.Close()
}

func (l *link) checkQueue(name string) error {
	return l.probe(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
}

// exception returns the server error that closed a channel, and only that channel; nil for any
// other error.
func exception(err error) *amqp.Error {
	var e *amqp.Error
	if errors.As(err, &e) && e.Server && e.Recover {
		return e
	}
	return nil
}

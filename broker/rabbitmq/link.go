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

// stuckTimeout is how long after the end of its context a call may wait for the server.
const stuckTimeout = time.Second

var errBlocked = errors.New("rabbitmq: the server takes no messages (connection.blocked): it lacks memory or disk")

// link is a publisher's connection and the lanes on it: a session.
type link struct {
	*connection
	p       *Publisher
	lost    chan struct{}
	blocked atomic.Bool // by an alarm of the server: it does not read what we write
	free    chan *lane
	run     sync.WaitGroup
}

func (p *Publisher) open(ctx context.Context) (*link, error) {
	conn, err := p.cfg.connect(ctx, "postrider publisher")
	if err != nil {
		return nil, err
	}
	l := &link{connection: conn, p: p, lost: make(chan struct{}), free: make(chan *lane, 64)}
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

// Close ends everything that runs for the connection.
func (l *link) Close() {
	if l.blocked.Load() {
		l.hangUp() // the server would not hear a goodbye
	}
	l.connection.Close()
	l.run.Wait()
}

// guard hangs up if the server leaves a call waiting for long after the end of its context, at which the client does
// not look. The call ends with stop.
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

// take returns a lane that no other call has.
func (l *link) take() (*lane, error) {
	for !l.blocked.Load() {
		select {
		case one := <-l.free:
			if !one.ch.IsClosed() {
				return one, nil
			}
		default:
			one, err := l.newLane()
			if err != nil {
				err = fmt.Errorf("rabbitmq: opening a channel: %v", err) //nolint:errorlint // no exception against a message
			}
			return one, err
		}
	}
	return nil, errBlocked
}

// put takes a lane back. One that is dead is closed, without waiting for the server's answer.
func (l *link) put(one *lane) {
	if one.dead == nil {
		select {
		case l.free <- one:
			return
		default:
		}
	}
	l.run.Go(func() { _ = one.ch.Close() })
}

// probe asks the server something on a channel of its own, which the answer "no" closes.
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

// exception returns the server's objection that closed a channel, and only that channel; nil if err is something else.
func exception(err error) *amqp.Error {
	var e *amqp.Error
	if errors.As(err, &e) && e.Server && e.Recover {
		return e
	}
	return nil
}

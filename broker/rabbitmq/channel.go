package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// stall is the maximum time for which a channel may fail to read returns. The client drops a return
// that is not read for 5 s: after a longer stall, such as in a suspended process, a message may
// seem confirmed although it was returned.
const stall = 4 * time.Second

var (
	errNacked   = errors.New("rabbitmq: the queue did not take the message (basic.nack): it may be full and reject")
	errStalled  = errors.New("rabbitmq: the process was suspended for so long that returns may be missing")
	errConfused = errors.New("rabbitmq: the server returned a message that was not sent")
	errLost     = errors.New("rabbitmq: sent, but no confirmation came")
)

// unroutable is the error of a message that no queue takes.
type unroutable amqp.Return

func (e *unroutable) Error() string {
	return fmt.Sprintf("rabbitmq: no queue takes routing key %q (%s): it is missing, not bound, or its node is down", e.RoutingKey, e.ReplyText)
}

// flight is a message that was sent.
type flight struct {
	index        int // in the call
	id, route    string
	confirmation *amqp.DeferredConfirmation // nil if the client failed to send it
	acked        bool
	back         *amqp.Return
}

// channel is an AMQP channel in confirm mode. One call at a time uses it exclusively, so that calls do
// not wait for each other.
type channel struct {
	link    *link
	ch      *amqp.Channel
	closed  chan *amqp.Error
	packet  codec.Packet // reused for each message, as is headers
	headers amqp.Table
	sent    []flight // since the last collect
	dead    error    // why the channel is unusable

	returned chan []amqp.Return // returns since the last receive; closed when no more can arrive
	rest     []amqp.Return      // returns left over when it was closed
	heard    time.Time          // when the listener was last idle
	stalled  bool
}

func (l *link) newChannel() (*channel, error) {
	ch, err := l.Channel()
	if err != nil {
		return nil, err
	}
	one := &channel{
		link:     l,
		ch:       ch,
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		headers:  make(amqp.Table),
		returned: make(chan []amqp.Return),
		heard:    time.Now(),
	}
	returns := ch.NotifyReturn(make(chan amqp.Return))
	if !l.begin(func() { one.listen(returns) }) {
		return nil, amqp.ErrClosed
	}
	return one, ch.Confirm(false)
}

// listen collects returns until collect receives them. The client delivers a message's return, on
// an unbuffered channel, before it handles the confirmation: a receive after the confirmation
// therefore gets the return.
func (l *channel) listen(returns <-chan amqp.Return) {
	defer close(l.returned)
	tick := time.NewTicker(time.Second) // so that a long gap between two rounds means a stall
	defer tick.Stop()
	for answer := l.returned; ; {
		if time.Since(l.heard) > stall {
			l.stalled, answer = true, nil
			l.link.hangUp()
		}
		l.heard = time.Now()
		select {
		case r, ok := <-returns:
			if !ok {
				return
			}
			l.rest = append(l.rest, r)
		case answer <- l.rest:
			l.rest = nil
		case <-tick.C:
		}
	}
}

// send publishes a message. After an error the channel is unusable.
func (l *channel) send(index int, route string, p amqp.Publishing) error {
	confirmation, err := l.ch.PublishWithDeferredConfirm(l.link.p.cfg.Exchange, route, true, false, p)
	l.sent = append(l.sent, flight{index: index, id: p.MessageId, route: route, confirmation: confirmation})
	l.dead = err
	if err != nil && !errors.Is(err, amqp.ErrClosed) {
		l.link.hangUp() // part of the message may have been sent
	}
	return err
}

// collect waits for the outcomes of the sent messages and reports them. It returns why the channel is
// unusable. It also gives up the channel if the call can wait no longer: late returns would be
// mistaken for those of the next call.
func (l *channel) collect(ctx context.Context, settle func(index int, err error)) error {
	if len(l.sent) == 0 {
		return l.dead
	}
	for i := range l.sent {
		f := &l.sent[i]
		if f.confirmation == nil {
			continue
		}
		if l.dead == nil {
			select {
			case <-f.confirmation.Done():
			case <-ctx.Done():
				l.dead = ctx.Err()
			}
		}
		f.acked = f.confirmation.Acked() // must be read before the returns
	}
	returned, ok := <-l.returned
	if !ok {
		returned = l.rest
	}
	if l.ch.IsClosed() {
		l.dead = amqp.ErrClosed
		if err := <-l.closed; err != nil {
			l.dead = err
		}
	}
	for i, next := 0, 0; next < len(returned); i++ { // returns arrive in the order of publication
		if i == len(l.sent) {
			l.dead = errConfused
			break
		}
		if f := &l.sent[i]; f.id == returned[next].MessageId && f.route == returned[next].RoutingKey {
			f.back = &returned[next]
			next++
		}
	}
	if !ok && l.stalled {
		l.dead = errStalled
	}
	for i := range l.sent {
		settle(l.sent[i].index, l.outcome(&l.sent[i]))
	}
	l.sent, l.packet.Body = l.sent[:0], nil
	return l.dead
}

func (l *channel) outcome(f *flight) error {
	switch {
	case errors.Is(l.dead, errStalled), errors.Is(l.dead, errConfused):
	case f.back != nil:
		return postrider.NameUnavailable((*unroutable)(f.back))
	case f.acked:
		return nil
	case l.dead == nil:
		return postrider.NameUnavailable(errNacked)
	}
	return fmt.Errorf("%w: %w", errLost, l.dead)
}

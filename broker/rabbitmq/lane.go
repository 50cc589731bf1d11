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

// stall is the longest time that a lane may have been away from its returns. The client drops one that nobody takes for
// 5 s: after a longer stall, such as that of a stopped process, a confirmation may lack its return.
const stall = 4 * time.Second

var (
	errNacked   = errors.New("rabbitmq: the queue did not take the message (basic.nack): it may be full and reject")
	errStalled  = errors.New("rabbitmq: the process stood still for so long that returns may be missing")
	errConfused = errors.New("rabbitmq: the server returned a message that was not sent")
	errLost     = errors.New("rabbitmq: sent, but no confirmation came")
)

// unroutable is the fate of a message that no queue was there for.
type unroutable amqp.Return

func (e *unroutable) Error() string {
	return fmt.Sprintf("rabbitmq: no queue takes routing key %q (%s): it is missing, not bound, or its node is down", e.RoutingKey, e.ReplyText)
}

// flight is a message that was sent.
type flight struct {
	index        int // in the call
	id, route    string
	confirmation *amqp.DeferredConfirmation // nil if the client has failed to send it
	acked        bool
	back         *amqp.Return
}

// lane is an AMQP channel in confirm mode. One call at a time has it for itself, so that none waits for another.
type lane struct {
	link    *link
	ch      *amqp.Channel
	closed  chan *amqp.Error
	packet  codec.Packet // memory that is used again for each message, as headers is
	headers amqp.Table
	sent    []flight // since the last collect
	dead    error    // why the lane is of no use any more

	returned chan []amqp.Return // what has come since the last time; closed when no more can come
	rest     []amqp.Return      // what was there when it was closed
	heard    time.Time          // when the listener last had nothing to do
	stalled  bool
}

func (l *link) newLane() (*lane, error) {
	ch, err := l.Channel()
	if err != nil {
		return nil, err
	}
	one := &lane{
		link:     l,
		ch:       ch,
		closed:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		headers:  make(amqp.Table),
		returned: make(chan []amqp.Return),
		heard:    time.Now(),
	}
	returns := ch.NotifyReturn(make(chan amqp.Return))
	l.run.Go(func() { one.listen(returns) })
	return one, ch.Confirm(false)
}

// listen keeps returns until collect asks for them. The client hands over a message's return, on a channel without a
// buffer, before it handles its confirmation: who asks after the confirmation gets the return.
func (l *lane) listen(returns <-chan amqp.Return) {
	defer close(l.returned)
	tick := time.NewTicker(time.Second) // so that a long time between two rounds means a stall
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

// send publishes a message. After an error the lane is of no use any more.
func (l *lane) send(index int, route string, p amqp.Publishing) error {
	confirmation, err := l.ch.PublishWithDeferredConfirm(l.link.p.cfg.Exchange, route, true, false, p)
	l.sent = append(l.sent, flight{index: index, id: p.MessageId, route: route, confirmation: confirmation})
	l.dead = err
	if err != nil && !errors.Is(err, amqp.ErrClosed) {
		l.link.hangUp() // part of the message may be on its way
	}
	return err
}

// collect waits for the fates of what was sent and hands them over. It returns why the lane is of no use any more: also
// when the call cannot wait any longer, as late returns would be taken for those of the next call.
func (l *lane) collect(ctx context.Context, settle func(index int, err error)) error {
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
		f.acked = f.confirmation.Acked() // before the returns are asked for, not after
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
	for i, next := 0, 0; next < len(returned); i++ { // they come in the order of publication
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
		settle(l.sent[i].index, l.fate(&l.sent[i]))
	}
	l.sent, l.packet.Body = l.sent[:0], nil
	return l.dead
}

func (l *lane) fate(f *flight) error {
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

package nats

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/internal/lease"
)

// consumeOrdered implements Consume for a group of which one process receives at a time. It calls
// stop, which ends the intake, if no attempt can ever succeed.
func (c *Consumer) consumeOrdered(in *intake.Intake, stop func()) error {
	leases := c.config.leases()
	defer leases.close()
	var fatal error
	in.Leased(leases, lease.Config{Length: c.config.Lease, Name: c.config.Name + " " + c.config.Group, Logger: c.config.Logger},
		func(ctx context.Context, p *intake.Part, t *lease.Term) {
			r := &orderly{
				receiver: receiver{
					Consumer: c, in: in, held: held{valid: t.Valid, msgs: make(map[position]*holding)}, hands: p.Accept, stop: stop,
				},
				part: p, term: t,
			}
			intake.Persist(ctx, c.config.Logger, c.config.Name, r.receive)
			fatal = r.fatal
		})
	in.Wait()
	return fatal
}

// orderly is a receiver for one term of the lease.
type orderly struct {
	receiver
	part *intake.Part
	term *lease.Term
}

// receive connects and hands messages over until an error occurs. At the end it waits for the
// handlers and gives back unhandled messages, oldest first, even if the lease is lost: a process
// that was paused may have received messages since, and the next owner would have to wait for their
// leases to expire.
func (r *orderly) receive(ctx context.Context, working func()) error {
	l, durable, g, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer r.keep(l, durable)()
	g.strict = true
	working()
	for err == nil && ctx.Err() == nil {
		err = r.fetch(ctx, l, durable, g)
	}
	r.leave(ctx, l, g, r.part.Wait)
	return cmp.Or(ctx.Err(), err)
}

// pullMax is the maximum time for which the server keeps a pull request.
const pullMax = 500 * time.Millisecond

// fetch requests messages once and hands them over. The server keeps the request for much less than
// the lease: messages that it delivers to a paused process are missing at the next owner until
// their leases expire.
func (r *orderly) fetch(ctx context.Context, l *link, durable jetstream.Consumer, g *gate) error {
	free := r.in.Free()
	if free == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	wait := min(r.config.Lease/4, pullMax)
	if left := r.term.Left(); left == 0 {
		<-ctx.Done() // ends with the term
		return ctx.Err()
	} else if left < 2*wait { // renewals are late, but may still be in time
		return r.rest(ctx, l, durable, g)
	}
	batch, err := durable.Fetch(free, jetstream.FetchMaxWait(wait))
	if err != nil {
		return err
	}
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for { // continue after the end of ctx: messages that the server has sent must be given back
		select {
		case msg, ok := <-batch.Messages():
			if !ok {
				return batch.Error()
			}
			err = r.receiver.accept(msg, g)
		case <-looks.C:
		case <-l.Lost():
			err = context.Cause(l.life) //nolint:contextcheck // why the connection has ended
		}
		if err == nil && ctx.Err() == nil && g.due(time.Now()) {
			if err = r.look(ctx, durable, g); ctx.Err() != nil {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// rest waits for lookEvery.
func (r *orderly) rest(ctx context.Context, l *link, durable jetstream.Consumer, g *gate) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil
	case <-l.Lost():
		return context.Cause(l.life) //nolint:contextcheck // why the connection has ended
	}
	if g.due(time.Now()) {
		return r.look(ctx, durable, g)
	}
	return nil
}

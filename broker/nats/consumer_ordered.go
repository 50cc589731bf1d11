package nats

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/internal/lease"
)

// consumeOrdered is Consume for a group of which one process receives at a time. It calls stop, which ends the intake, when no attempt
// can ever work.
func (c *Consumer) consumeOrdered(in *intake.Intake, stop func()) error {
	leases := c.config.leases()
	defer leases.close()
	var hopeless error
	in.Leased(leases, lease.Config{Length: c.config.Lease, Name: c.config.Name + " " + c.config.Group, Logger: c.config.Logger},
		func(ctx context.Context, p *intake.Part, t *lease.Term) {
			r := &orderly{
				receiver: receiver{
					Consumer: c, in: in, held: held{valid: t.Valid, msgs: make(map[position]*holding)}, hands: p.Accept, stop: stop,
				},
				part: p, term: t,
			}
			intake.Persist(ctx, c.config.Logger, c.config.Name, r.receive)
			hopeless = r.hopeless
		})
	in.Wait()
	return hopeless
}

// orderly is a receiver for one term of the lease.
type orderly struct {
	receiver
	part *intake.Part
	term *lease.Term
}

// receive connects and hands messages over until something goes wrong. At the end it waits for the handlers and gives back what they
// have not done, the oldest first. It does so also when the lease is lost: a process that was paused may have received messages
// since, which the next one would otherwise wait for as long as a lease.
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

// pullMax is the longest that the server keeps a request for messages.
const pullMax = 500 * time.Millisecond

// fetch asks for messages once and hands them over. The server keeps the request for much less than the lease: what it gives to a
// process that was paused meanwhile is missing at the next one, which then has to wait until it is delivered again.
func (r *orderly) fetch(ctx context.Context, l *link, durable jetstream.Consumer, g *gate) error {
	free := r.in.Free()
	if free == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	wait := min(r.config.Lease/4, pullMax)
	if left := r.term.Left(); left == 0 {
		<-ctx.Done() // it ends with the term
		return ctx.Err()
	} else if left < 2*wait { // renewals are late, and may be in time yet
		return r.rest(ctx, l, durable, g)
	}
	batch, err := durable.Fetch(free, jetstream.FetchMaxWait(wait))
	if err != nil {
		return err
	}
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	for { // also after the end of ctx: what the server has sent must be given back
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

// rest lets a little time pass.
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

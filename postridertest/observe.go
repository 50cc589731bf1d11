package postridertest

import (
	"context"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// asking wraps the publisher that the relay uses: it records what was not confirmed.
type asking struct {
	postrider.Publisher
	journal *journal
}

func (p asking) KeepsOrder() bool { return true }

func (p asking) NameOf(m *postrider.Message) string { return nameOf(p.Publisher, m) }

func (p asking) Publish(ctx context.Context, msgs []postrider.Message) []error {
	defer p.journal.enter()()
	errs := p.Publisher.Publish(ctx, msgs)
	for i, err := range errs {
		if err != nil {
			p.journal.add(Step{What: Unconfirmed, Message: msgs[i], Err: err.Error()})
		}
	}
	return errs
}

// accepting wraps the broker: it records what has arrived, and passes it on to the consumers.
type accepting struct {
	postrider.Publisher
	arrivals *arrivals
	journal  *journal
}

func (p accepting) KeepsOrder() bool { return true }

func (p accepting) NameOf(m *postrider.Message) string { return nameOf(p.Publisher, m) }

func (p accepting) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := p.Publisher.Publish(ctx, msgs)
	for i, m := range msgs {
		if i >= len(errs) || errs[i] == nil {
			p.journal.add(Step{What: Sent, Message: m})
			p.arrivals.add(m)
		}
	}
	return errs
}

// watched wraps an inbox's store: it records the outcome of each message.
type watched[Tx any] struct {
	inbox.Store[Tx]
	journal *journal
}

func (s watched[Tx]) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[Tx]) ([]inbox.Verdict, error) {
	verdicts, err := s.Store.Handle(ctx, consumer, msgs, late, work)
	if err != nil {
		return verdicts, err
	}
	for i, v := range verdicts {
		step := Step{What: Handled, By: consumer, Message: msgs[i]}
		switch v {
		case inbox.Handled:
		case inbox.Repeated:
			step.What = Repeated
		case inbox.Waiting:
			step.What = Waiting
		case inbox.Late:
			step.What, step.Err = Dead, inbox.ErrLate.Error()
		}
		s.journal.add(step)
	}
	return verdicts, nil
}

func (s watched[Tx]) Defer(ctx context.Context, consumer string, m postrider.Message, back inbox.Deferral) error {
	err := s.Store.Defer(ctx, consumer, m, back)
	if err == nil {
		s.journal.add(deferralStep(consumer, m, back))
	}
	return err
}

func (s watched[Tx]) Retry(ctx context.Context, consumer string, work func(context.Context, Tx, feeds.Deferred) error, decide func(feeds.Deferred, error) inbox.Deferral) (inbox.Attempt, error) {
	defer s.journal.handle()()
	var step Step
	a, err := s.Store.Retry(ctx, consumer,
		func(ctx context.Context, tx Tx, d feeds.Deferred) error {
			step = Step{What: Handled, By: consumer, Message: d.Message}
			return work(ctx, tx, d)
		},
		func(d feeds.Deferred, err error) inbox.Deferral {
			back := decide(d, err)
			step = deferralStep(consumer, d.Message, back)
			return back
		})
	if err == nil && a.Found {
		s.journal.add(step)
	}
	return a, err
}

func deferralStep(consumer string, m postrider.Message, back inbox.Deferral) Step {
	step := Step{What: Failed, By: consumer, Message: m, Err: back.Cause}
	if back.Status == feeds.StatusDead {
		step.What = Dead
	}
	return step
}

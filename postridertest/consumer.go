package postridertest

import (
	"context"
	"errors"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// Consumer returns a consumer with faults, to use in place of c.
func (in *Injector) Consumer(c postrider.Consumer) postrider.Consumer {
	return &faultyConsumer{in, c, in.apart(&in.loseAck)}
}

type faultyConsumer struct {
	in       *Injector
	consumer postrider.Consumer
	loseAck  *tally
}

func (c *faultyConsumer) Consume(ctx context.Context, handle postrider.Handler) error {
	return c.consumer.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		err := handle(ctx, m)
		if err == nil && c.in.strikes(c.loseAck, &m) {
			err = injected("the acknowledgement was lost")
		}
		return err
	})
}

func (c *faultyConsumer) Close() error { return c.consumer.Close() }

// InboxStore wraps a store with faults, for [inbox.New] to use in place of it.
func InboxStore[Tx any](in *Injector, store inbox.Store[Tx]) inbox.Store[Tx] {
	return &faultyInbox[Tx]{store, in, in.apart(&in.loseCommit)}
}

type faultyInbox[Tx any] struct {
	inbox.Store[Tx]
	in         *Injector
	loseCommit *tally
}

var errCommit = injected("the consumer died before its commit")

func (s *faultyInbox[Tx]) Handle(ctx context.Context, consumer string, msgs []postrider.Message, late bool, work inbox.Work[Tx]) ([]inbox.Verdict, error) {
	verdicts, err := s.Store.Handle(ctx, consumer, msgs, late, func(ctx context.Context, tx Tx, fresh []int) error {
		if err := work(ctx, tx, fresh); err != nil {
			return err
		}
		lost := false
		for _, n := range fresh {
			lost = s.in.strikes(s.loseCommit, &msgs[n]) || lost
		}
		if lost {
			return errCommit
		}
		return nil
	})
	if errors.Is(err, errCommit) {
		return nil, errCommit // not a FailedError: a consumer that has died cannot defer the message
	}
	return verdicts, err
}

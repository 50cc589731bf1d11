package sqs

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/sqs/internal/service"
)

func init() {
	broker.Register(broker.Driver{
		Name:      schemeSQS,
		Schemes:   []string{schemeSQS, schemeSNS},
		Example:   "sqs://eu-central-1",
		Doc:       "Messages go to the Amazon SQS queue with their name or, with sns://, to the SNS topic; in a FIFO one, to the group of their key.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return broker.From(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return broker.From(s, NewConsumer) },
		Create:    create,
		Bare:      bare,
	})
}

// create makes a queue or a topic.
func create(ctx context.Context, s *broker.Settings, name string) error {
	p, err := broker.From(s, NewPublisher)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // returns nil
	return prefix(p.service.Create(ctx, name))
}

// bare sends a load with the client alone: several concurrent requests of ten messages.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	p, err := broker.From(s, NewPublisher)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // returns nil
	address, err := p.service.Locate(ctx, load.Name)
	if err != nil {
		return prefix(err)
	}
	payload := make([]byte, load.Size)
	for i := range payload {
		payload[i] = 'x'
	}
	errs := make([]error, parallel)
	var run sync.WaitGroup
	for n := range parallel {
		run.Go(func() {
			for from := n * service.MostEntries; from < load.Messages && errs[n] == nil; from += parallel * service.MostEntries {
				entries := make([]service.Entry, min(service.MostEntries, load.Messages-from))
				for i := range entries {
					key := strconv.Itoa((from + i) % max(load.Keys, 1))
					packet := codec.Packet{Name: load.Name, Key: key, ID: postrider.NewID().String(), Body: payload}
					if entries[i], errs[n] = service.Pack(&packet, codec.Raw); errs[n] != nil {
						return
					}
				}
				each, err := p.service.Send(ctx, address, entries)
				errs[n] = errors.Join(append(each, err)...)
			}
		})
	}
	run.Wait()
	return errors.Join(errs...)
}

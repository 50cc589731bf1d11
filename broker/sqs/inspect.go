package sqs

import (
	"context"
	"fmt"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/sqs/internal/service"
)

// Inspect queries the attributes of queues or topics.
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	in := broker.Inspection{}
	longest, _ := p.service.Limits()
	for _, name := range names {
		if err := service.CheckName(name, longest); err != nil {
			service.Warn(&in, err.Error(), "Correct the name in the routes.")
			continue
		}
		switch err := p.service.Inspect(ctx, name, &in); {
		case service.IsMissing(err):
			service.Warn(&in, fmt.Sprintf("there is no %s: its messages wait", name), "Create it: "+p.service.Missing(name)+".")
		case err != nil:
			return broker.Inspection{}, prefix(err)
		}
		if !service.IsFIFO(name) {
			service.Warn(&in, fmt.Sprintf("%s is a standard one: consumers get messages in no order, and some of them twice", name),
				"If the order of a key matters, send to one whose name ends in .fifo.")
		}
	}
	return in, nil
}

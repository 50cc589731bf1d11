package api

import (
	"context"
	"time"

	"github.com/postrider/postrider/admin"
)

// Consumer is the state of a program with an inbox.
type Consumer struct {
	Name     string              `json:"name"`
	Created  time.Time           `json:"created"`
	Last     time.Time           `json:"last,omitzero"`
	Heard    time.Time           `json:"heard,omitzero"`
	Process  string              `json:"process,omitempty"`
	Deferred admin.DeferredCount `json:"deferred"`
	Problems []Problem           `json:"problems"`
}

func (s *Server) consumers(ctx context.Context, d *database, _ *DB) ([]Consumer, error) {
	l, err := d.standing(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Consumer, len(l.Standing.Consumers))
	for i := range all {
		all[i] = d.consumerOf(&l.Standing.Consumers[i], l.Standing.At)
	}
	return all, nil
}

func (d *database) consumerOf(c *admin.ConsumerStanding, now time.Time) Consumer {
	return Consumer{c.Name, c.Created.UTC(), c.Last.UTC(), c.Heard.UTC(), c.Process, c.Deferred, d.problemsOfConsumer(c, now)}
}

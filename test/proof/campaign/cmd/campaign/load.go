package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/test/proof/campaign/work/foreign"
	"github.com/postrider/postrider/test/proof/campaign/work/producer"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// load begins what producers and other services do besides their usual work.
func (s *stage) load(ctx context.Context, l world.Load) (end func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	ctx = context.WithoutCancel(ctx)
	switch l.Kind {
	case world.HotKey:
		stop, err := producer.Hot(ctx, s.plan, l.Destination, s.log)
		return func(context.Context) error { stop(); return nil }, err
	case world.BulkTransaction:
		end, err := producer.Many(ctx, s.plan, l.Destination, l.Messages, s.log)
		return func(ctx context.Context) error {
			if err := end(ctx, l.Commit); err != nil { // its connection was cut: the server rolls it back
				s.log.Info("a bulk transaction could not be ended", "err", err)
			}
			return nil
		}, err
	case world.TenantFlood:
		return nothing, producer.Flood(ctx, s.plan, l.Destination, l.Messages, s.log)
	case world.Foreign:
		err := s.withPool(ctx, func(ctx context.Context, pool *pgxpool.Pool) error {
			sent, err := foreign.Send(ctx, pool, s.plan, l.Destination, l.Messages, s.log)
			s.log.Info("foreign messages", "destination", l.Destination, "confirmed", sent, "err", err)
			if sent > 0 {
				return nil // what a destination refuses is not counted
			}
			return err
		})
		return nothing, err
	}
	return nil, fmt.Errorf("there is no load %q", l.Kind)
}

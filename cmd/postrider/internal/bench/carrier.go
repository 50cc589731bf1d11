package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// carrier is a relay at work, with connections of its own.
type carrier struct {
	close func()
	relay *relay.Relay
	stop  context.CancelFunc
	ended chan error
}

// relayConnections are what "postrider relay" opens, too.
const relayConnections = 4

// carry starts a relay for the feed and waits until it holds all shards. The caller stops it with halt.
func (l *Lab) carry(ctx context.Context, feed string, to postrider.Publisher) (*carrier, error) {
	return l.carryWith(ctx, relay.Config{Feed: feed, Create: true, Logger: l.Logger}, to) // each round has a feed of its own
}

// carryWith is carry with settings.
func (l *Lab) carryWith(ctx context.Context, config relay.Config, to postrider.Publisher) (*carrier, error) {
	store, closeStore, err := l.engine.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := relay.New(store, to, config)
	if err != nil {
		closeStore()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &carrier{closeStore, r, cancel, make(chan error, 1)}
	go func() { c.ended <- r.Run(ctx) }()
	if err := c.ready(ctx, l.Shards); err != nil {
		return nil, errors.Join(err, c.halt())
	}
	return c, nil
}

// ready waits until the relay holds all shards.
func (c *carrier) ready(ctx context.Context, shards int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.relay.Stats().Lanes < shards {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: the relay holds %d of %d shards: %w", c.relay.Stats().Lanes, shards, ctx.Err())
		}
	}
	return nil
}

// halt stops the relay cleanly and waits for that.
func (c *carrier) halt() error {
	c.stop()
	err := <-c.ended
	c.close()
	return err
}

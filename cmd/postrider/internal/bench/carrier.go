package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// carrier is a running relay with its own connections.
type carrier struct {
	close func()
	relay *relay.Relay
	stop  context.CancelFunc
	ended chan error
}

// relayConnections is the number of connections of "postrider relay".
const relayConnections = 4

// carry starts a relay for the feed and waits until it owns all shards. The caller stops it with
// halt.
func (l *Lab) carry(ctx context.Context, feed string, to postrider.Publisher) (*carrier, error) {
	return l.carryWith(ctx, relay.Config{Feed: feed, Create: true, Logger: l.Logger}, to) // each round uses a feed of its own
}

// carryWith is carry with a configuration.
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

// ready waits until the relay owns all shards.
func (c *carrier) ready(ctx context.Context, shards int) error {
	ctx, cancel := context.WithTimeout(ctx, progressTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for c.relay.Stats().Shards < shards {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: the relay owns %d of %d shards: %w", c.relay.Stats().Shards, shards, ctx.Err())
		}
	}
	return nil
}

// halt stops the relay and waits until it has stopped.
func (c *carrier) halt() error {
	c.stop()
	err := <-c.ended
	c.close()
	return err
}

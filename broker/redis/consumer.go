package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/redis/internal/server"
	"github.com/postrider/postrider/retry"
)

var _ postrider.Consumer = (*Consumer)(nil)

// Consumer receives the entries of a stream as a member of a consumer group. Members of a group
// share the entries: with more than one, order per key holds only within each member, unless
// [Config.Ordered] is set.
type Consumer struct {
	intake.Counters

	cfg     Config
	coder   *codec.Codec
	dead    intake.DeadLetters
	options *redis.UniversalOptions
	one     sync.Mutex // serialises Consume
}

// NewConsumer returns a consumer that connects on first use. Errors concern the configuration.
func NewConsumer(cfg Config) (*Consumer, error) {
	var mistake error
	if cfg.Name == "" {
		mistake = errors.New("name: is empty, want the name of a stream")
	}
	options, coder, err := cfg.prepare(mistake)
	if err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(cfg.DeadLetter, cfg.Name, cfg, NewPublisher)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	options.PoolSize = 8
	return &Consumer{cfg: cfg, coder: coder, dead: dead, options: options}, nil
}

// Close closes the dead-letter publisher. Other connections end with Consume.
func (c *Consumer) Close() error { return c.dead.Close() }

// Consume implements [postrider.Consumer]. An entry that claims to be a CloudEvent but is invalid
// is handed over undecoded, with its fields as headers, and an error is logged.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	c.one.Lock()
	defer c.one.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	if c.cfg.Trim > 0 {
		var trims sync.WaitGroup
		defer trims.Wait()
		trims.Go(func() { c.trim(ctx) })
	}
	if c.cfg.Ordered {
		return c.consumeOrdered(in, cancel)
	}
	held := newHeld(&c.cfg, c.options)
	first := true
	fatal := c.persist(ctx, cancel, func(ctx context.Context, working func()) error { return c.receive(ctx, in, held, &first, working) })
	cancel()
	in.Wait()
	held.leave() //nolint:contextcheck // ctx has ended, but the server must be informed
	return fatal
}

// persist receives until ctx ends. If no attempt can ever succeed, it calls end and returns the
// reason.
func (c *Consumer) persist(ctx context.Context, end func(), receive func(ctx context.Context, working func()) error) (fatal error) {
	intake.Persist(ctx, c.cfg.Logger, "redis stream "+c.cfg.Name, func(ctx context.Context, working func()) error {
		err := receive(ctx, working)
		if server.HasCode(err, "WRONGTYPE") {
			fatal = fmt.Errorf("redis: %s is no stream: %w", c.cfg.Name, err)
			end()
		}
		return err
	})
	return fatal
}

// receive reads until an error occurs. The first time, it takes over entries of members that are
// gone. Entries that the server sent but that were lost with the connection are among this member's
// pending entries, so each call starts with those. After that it alternates between entries of
// members that have fallen silent and new ones.
func (c *Consumer) receive(ctx context.Context, in *intake.Intake, held *held, first *bool, working func()) error {
	client := redis.NewUniversalClient(c.options)
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })() // ends the wait for entries
	err := client.XGroupCreateMkStream(ctx, c.cfg.Name, c.cfg.Group, "0").Err()
	if err != nil && !server.HasCode(err, "BUSYGROUP") {
		return err
	}
	working()
	if *first {
		if err := c.takeOver(ctx, client); err != nil {
			return err
		}
		*first = false
	}
	var claimed time.Time
	for from, claim := "0", "0-0"; ; {
		free := in.Free()
		if free == 0 {
			return ctx.Err()
		}
		var entries []redis.XMessage
		if from == ">" && time.Since(claimed) >= c.cfg.ClaimIdle/2 {
			entries, claim, err = client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
				Stream: c.cfg.Name, Group: c.cfg.Group, Consumer: c.cfg.Member,
				MinIdle: c.cfg.ClaimIdle, Start: claim, Count: int64(free),
			}).Result()
			if claim == "0-0" { // the scan is complete
				claimed = time.Now()
			}
		} else if entries, err = c.read(ctx, client, from, free); from != ">" {
			from = ">"
			if len(entries) > 0 {
				from = entries[len(entries)-1].ID
			}
		}
		if err != nil {
			return err
		}
		c.accept(in.Accept, held, entries) //nolint:contextcheck // what was handled is acknowledged even when ctx has ended
	}
}

// read reads pending entries after an ID, or waits for new ones.
func (c *Consumer) read(ctx context.Context, client redis.UniversalClient, from string, count int) ([]redis.XMessage, error) {
	streams, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: c.cfg.Group, Consumer: c.cfg.Member, Streams: []string{c.cfg.Name, from}, Count: int64(count),
		Block: min(5*time.Second, c.cfg.ClaimIdle/2),
	}).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	if len(streams) == 0 {
		return nil, err
	}
	return streams[0].Messages, err
}

// accept hands entries to the intake, unless it has them already, and waits for room. After the end
// it only records them, so that leave releases them.
func (c *Consumer) accept(accept func(intake.Delivery) bool, held *held, entries []redis.XMessage) {
	for _, entry := range entries {
		if !held.take(entry.ID) {
			continue
		}
		if entry.Values == nil {
			c.cfg.Logger.Error("redis: an entry was deleted before it was handled", "stream", c.cfg.Name, "entry", entry.ID)
			held.done(entry.ID)
			continue
		}
		_ = accept(intake.Delivery{Message: c.message(entry), Done: func() { held.done(entry.ID) }})
	}
}

func (c *Consumer) message(entry redis.XMessage) postrider.Message {
	p := packet(c.cfg.Name, entry.ID, entry.Values)
	m, err := c.coder.Decode(&p)
	if err != nil {
		c.cfg.Logger.Error("redis: an entry cannot be decoded", "stream", c.cfg.Name, "entry", entry.ID, "err", err)
	}
	return m
}

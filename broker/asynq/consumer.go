package asynq

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	queue "github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/redis/server"
	"github.com/postrider/postrider/wire"
)

var _ postrider.Consumer = (*Consumer)(nil)

// Consumer is a worker of asynq. It takes the tasks of a queue in no order, not even those of one key.
type Consumer struct {
	cfg    Config
	codec  *wire.Codec
	client *redis.Client
	one    sync.Mutex // Consume at a time
	close  func() error
}

// NewConsumer returns a consumer that connects when it is first used. Errors are about the configuration.
func NewConsumer(cfg Config) (*Consumer, error) {
	options, codec, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	cfg.Queue = cmp.Or(cfg.Name, cfg.Queue)
	options.PoolSize = cfg.InFlight + 8 // workers, and asynq's own housekeeping
	options.Dialer = patient(options.Dialer)
	c := &Consumer{cfg: cfg, codec: codec, client: redis.NewClient(options)}
	c.close = sync.OnceValue(c.client.Close)
	return c, nil
}

// patient pauses before it reports that Redis is not there: asynq asks again without one.
func patient(dial server.Dial) server.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			timer := time.NewTimer(500 * time.Millisecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
		return conn, err
	}
}

// Close closes all connections.
func (c *Consumer) Close() error { return c.close() }

// Consume implements [postrider.Consumer]. A task that claims to be a CloudEvent and is none is handed over as it is, and
// logged as an error. A handler that fails is called again in place; only when a task runs into its timeout does asynq
// take over, with retries of its own.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	c.one.Lock()
	defer c.one.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := intake.Open(ctx, handle, intake.Config{Limit: c.cfg.InFlight, Logger: c.cfg.Logger})
	h := &handoff{c: c, in: in, ctx: ctx, ended: make(chan struct{})}
	worker := queue.NewServerFromRedisClient(c.client, queue.Config{
		Concurrency:         c.cfg.InFlight,
		Queues:              map[string]int{c.cfg.Queue: 1},
		TaskCheckInterval:   200 * time.Millisecond,
		ShutdownTimeout:     200 * time.Millisecond, // handlers have returned by then: what is left goes back to the queue
		HealthCheckInterval: 3 * time.Second,
		HealthCheckFunc:     c.outages(),
		Logger:              taskLog{c.cfg.Logger},
		ErrorHandler: queue.ErrorHandlerFunc(func(_ context.Context, t *queue.Task, err error) {
			c.cfg.Logger.Error("asynq: task is given back to asynq, for a retry of its own or its archive", "type", t.Type(), "err", err)
		}),
	})
	if err := worker.Start(h); err != nil {
		cancel()
		in.Wait()
		return fmt.Errorf("asynq: %w", err)
	}
	<-ctx.Done()
	worker.Stop()
	h.shut()
	in.Wait()
	close(h.ended)
	worker.Shutdown()
	return nil
}

func (c *Consumer) message(ctx context.Context, t *queue.Task) postrider.Message {
	id, _ := queue.GetTaskID(ctx)
	m, err := message(c.codec, id, t)
	if err != nil {
		c.cfg.Logger.Error("asynq: task cannot be decoded, handing it over raw", "queue", c.cfg.Queue, "task", id, "err", err)
	}
	return m
}

// outages logs when Redis goes away and when it is back.
func (c *Consumer) outages() func(error) {
	out := false
	return func(err error) {
		if (err != nil) == out {
			return
		}
		if out = err != nil; out {
			c.cfg.Logger.Warn("asynq: consumer cannot reach Redis, trying again", "queue", c.cfg.Queue, "err", err)
		} else {
			c.cfg.Logger.Info("asynq: consumer is back", "queue", c.cfg.Queue)
		}
	}
}

// taskLog is what asynq says about itself, which is mostly noise.
type taskLog struct{ log *slog.Logger }

func (l taskLog) say(values []any)    { l.log.Debug("asynq: worker", "says", fmt.Sprint(values...)) }
func (l taskLog) Debug(values ...any) { l.say(values) }
func (l taskLog) Info(values ...any)  { l.say(values) }
func (l taskLog) Warn(values ...any)  { l.say(values) }
func (l taskLog) Error(values ...any) { l.say(values) }
func (l taskLog) Fatal(values ...any) { l.log.Error("asynq: worker", "says", fmt.Sprint(values...)) }

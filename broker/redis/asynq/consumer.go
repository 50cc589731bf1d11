package asynq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	queue "github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/redis/internal/server"
	"github.com/postrider/postrider/retry"
)

var _ postrider.Consumer = (*Consumer)(nil)

// Consumer is a worker of asynq. It takes the tasks of a queue in no order, even those of one key.
type Consumer struct {
	intake.Counters

	cfg    Config
	coder  *codec.Codec
	dead   intake.DeadLetters
	client *redis.Client
	one    sync.Mutex // serialises Consume
	close  func() error
}

// NewConsumer returns a consumer that connects on first use. Errors concern the configuration.
func NewConsumer(cfg Config) (*Consumer, error) {
	options, coder, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	cfg.Queue = cmp.Or(cfg.Name, cfg.Queue)
	other := cfg
	other.Queue = cfg.DeadLetter
	dead, err := intake.OpenDeadLetters(cfg.DeadLetter, cfg.Queue, other, NewPublisher)
	if err != nil {
		return nil, fmt.Errorf("asynq: %w", err)
	}
	dead.Name = ""                      // DeadLetter is a queue: keep the type of the task
	options.PoolSize = cfg.InFlight + 8 // workers, plus asynq's own housekeeping
	options.Dialer = slowToFail(options.Dialer)
	c := &Consumer{cfg: cfg, coder: coder, dead: dead, client: redis.NewClient(options)}
	c.close = sync.OnceValue(func() error { return errors.Join(c.client.Close(), c.dead.Close()) })
	return c, nil
}

// slowToFail delays the report of a failed dial, because asynq retries without backoff.
func slowToFail(dial server.Dial) server.Dial {
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

// Consume implements [postrider.Consumer]. A task that claims to be a CloudEvent but is invalid is
// handed over undecoded, and an error is logged. A task whose handler fails goes back to asynq,
// which delivers it again after the backoff and archives it after the task's own number of retries.
// A failure marked as [postrider.Unavailable] does not count.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	c.one.Lock()
	defer c.one.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	h := &handoff{c: c, in: in, ctx: ctx, ended: make(chan struct{})}
	worker := queue.NewServerFromRedisClient(c.client, queue.Config{
		Concurrency:       c.cfg.InFlight,
		Queues:            map[string]int{c.cfg.Queue: 1},
		TaskCheckInterval: 200 * time.Millisecond,
		// How long after its due time a failed task may be delivered again.
		DelayedTaskCheckInterval: 500 * time.Millisecond,
		RetryDelayFunc:           pauseOf,
		IsFailure:                func(err error) bool { return err != nil && postrider.ClassOf(err) != postrider.ClassUnavailable },
		ShutdownTimeout:          200 * time.Millisecond, // handlers have returned by then: anything left goes back to the queue
		HealthCheckInterval:      3 * time.Second,
		HealthCheckFunc:          c.outages(),
		Logger:                   taskLog{c.cfg.Logger},
		ErrorHandler: queue.ErrorHandlerFunc(func(ctx context.Context, t *queue.Task, err error) {
			retried, _ := queue.GetRetryCount(ctx)
			if most, _ := queue.GetMaxRetry(ctx); retried >= most && postrider.ClassOf(err) != postrider.ClassUnavailable {
				c.cfg.Logger.Error("asynq: task has failed too often and is archived", "queue", c.cfg.Queue, "type", t.Type(), "retries", retried, "err", err)
			}
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
	m, err := message(c.coder, id, t)
	if err != nil {
		c.cfg.Logger.Error("asynq: task cannot be decoded, handing it over undecoded", "queue", c.cfg.Queue, "task", id, "err", err)
	}
	return m
}

// outages returns a function that logs the beginning and the end of an outage of Redis.
func (c *Consumer) outages() func(error) {
	out := false
	return func(err error) {
		if (err != nil) == out {
			return
		}
		if out = err != nil; out {
			c.cfg.Logger.Warn("asynq: consumer cannot reach Redis, trying again", "queue", c.cfg.Queue, "err", err)
		} else {
			c.cfg.Logger.Info("asynq: consumer has reconnected to Redis", "queue", c.cfg.Queue)
		}
	}
}

// taskLog logs asynq's own messages at debug level, except fatal ones.
type taskLog struct{ log *slog.Logger }

func (l taskLog) say(values []any)    { l.log.Debug("asynq: worker", "says", fmt.Sprint(values...)) }
func (l taskLog) Debug(values ...any) { l.say(values) }
func (l taskLog) Info(values ...any)  { l.say(values) }
func (l taskLog) Warn(values ...any)  { l.say(values) }
func (l taskLog) Error(values ...any) { l.say(values) }
func (l taskLog) Fatal(values ...any) { l.log.Error("asynq: worker", "says", fmt.Sprint(values...)) }

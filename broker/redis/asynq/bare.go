package asynq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	queue "github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker"
)

// bare enqueues from as many goroutines as there are connections, because asynq cannot enqueue in
// batches.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	p, err := open(s, NewPublisher)
	if err != nil {
		return err
	}
	cfg, options := p.cfg, *p.options
	options.PoolSize = cfg.Connections
	redisClient := redis.NewClient(&options)
	defer func() { _ = redisClient.Close() }()
	client := queue.NewClientFromRedisClient(redisClient)

	payload := make([]byte, load.Size)
	var sent atomic.Int64
	var run sync.WaitGroup
	errs := make(chan error, cfg.Connections)
	for range cfg.Connections {
		run.Go(func() {
			for sent.Add(1) <= int64(load.Messages) {
				if _, err := client.EnqueueContext(ctx, queue.NewTask(load.Name, payload), queue.Queue(cfg.Queue)); err != nil {
					errs <- fmt.Errorf("asynq: %w", err)
					return
				}
			}
		})
	}
	run.Wait()
	close(errs)
	return <-errs
}

package redis

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker"
)

// bare sends through pipelines of the client. It uses several, so that Redis has work while the
// answers to the previous one are read.
func bare(ctx context.Context, s *broker.Settings, load broker.Load) error {
	const senders, batch = 4, 1000
	p, err := open(s, NewPublisher)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	payload := make([]byte, load.Size)
	errs := make([]error, senders)
	var run sync.WaitGroup
	for n := range senders {
		run.Go(func() {
			for from := n * batch; from < load.Messages && errs[n] == nil; from += senders * batch {
				pipe := p.routes.client.Pipeline()
				for i := from; i < min(from+batch, load.Messages); i++ {
					key := strconv.Itoa(i % max(load.Keys, 1))
					_ = pipe.Process(ctx, redis.NewStringCmd(ctx, "xadd", load.Name, "*", fieldKey, key, fieldData, payload))
				}
				_, errs[n] = pipe.Exec(ctx)
			}
		})
	}
	run.Wait()
	return errors.Join(errs...)
}

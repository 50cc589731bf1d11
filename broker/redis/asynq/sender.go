package asynq

import (
	"context"
	"errors"

	queue "github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

// sender sends one message at a time over its own connection.
type sender struct {
	queue   string
	coder   *codec.Codec
	line    *line
	client  *queue.Client
	seen    *observer
	options []queue.Option
	packet  codec.Packet
}

func newSender(cfg *Config, coder *codec.Codec, options *redis.Options) *sender {
	s := &sender{queue: cfg.Queue, coder: coder, line: newLine(options), seen: &observer{}}
	s.line.client.AddHook(s.seen)
	s.client = queue.NewClientFromRedisClient(s.line.client)
	s.options = []queue.Option{
		queue.Queue(cfg.Queue), queue.MaxRetry(cfg.MaxRetry), queue.Timeout(cfg.TaskTimeout), queue.Retention(cfg.Retention),
		nil, // the task's ID
	}
	return s
}

func (s *sender) send(ctx context.Context, m *postrider.Message) error {
	s.coder.Encode(m, &s.packet)
	s.options[len(s.options)-1] = queue.TaskID(s.packet.UniqueID())
	s.seen.err = nil
	err := s.line.run(ctx, func() error {
		_, err := s.client.EnqueueContext(ctx, task(&s.packet), s.options...)
		return err
	})
	s.packet.Body = nil
	switch reply := s.seen.err; {
	case err == nil || errors.Is(err, queue.ErrTaskIDConflict): // on a conflict the task exists already
		return nil
	case reply == nil: // refused by asynq itself, for example because of a blank type
		return postrider.Permanent(err)
	case server.HasCode(reply, "WRONGTYPE"):
		s.undo(ctx)
		return postrider.Unavailable(reply)
	case !s.line.reached(), server.HasCode(reply, "NOPERM"): // the queue is refused, not the message
		return postrider.Unavailable(reply)
	default:
		return server.Classify(reply)
	}
}

// undo deletes what asynq leaves behind if it cannot add a task to a queue whose key holds another
// type. The next attempt would mistake it for the task itself.
func (s *sender) undo(ctx context.Context) {
	_ = s.line.run(ctx, func() error { return s.line.client.Del(ctx, "asynq:{"+s.queue+"}:t:"+s.packet.UniqueID()).Err() })
}

// observer records Redis' answers, because asynq keeps only their text.
type observer struct{ err error }

// DialHook implements [redis.Hook].
func (o *observer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (o *observer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		o.err = next(ctx, cmd)
		return o.err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (o *observer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

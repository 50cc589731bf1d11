package asynq

import (
	"cmp"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "asynq",
		Schemes:   []string{"asynq", "asynqs"},
		Example:   "asynq://localhost:6379/0",
		Doc:       "Each message becomes a task in a queue of asynq, on Redis.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return open(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return open(s, NewConsumer) },
		Bare:      bare,
	})
}

func open[T any](s *broker.Settings, open func(Config) (T, error)) (T, error) {
	server.LogTo(s.Logger)
	return broker.From(s, func(c Config) (T, error) {
		c.MaxRetry, c.Retention = cmp.Or(c.MaxRetry, -1), cmp.Or(c.Retention, -1) // zero no longer means the default
		return open(c)
	})
}

package redis

import (
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

func init() {
	broker.Register(broker.Driver{
		Name:      "redis",
		Schemes:   []string{"redis", "rediss"},
		Example:   "redis://localhost:6379/0",
		Doc:       "Each message becomes an entry of a Redis stream.",
		Options:   broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) { return open(s, NewPublisher) },
		Consumer:  func(s *broker.Settings) (postrider.Consumer, error) { return open(s, NewConsumer) },
		Bare:      bare,
	})
}

func open[T any](s *broker.Settings, open func(Config) (T, error)) (T, error) {
	server.LogTo(s.Logger)
	return broker.From(s, open)
}

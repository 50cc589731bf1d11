package spool

import (
	"context"
	"os"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

//docs:begin driver
func init() {
	broker.Register(broker.Driver{
		Name:    "spool",
		Schemes: []string{"spool"},
		Doc:     "Each message becomes a file in a folder.",
		Options: broker.OptionsOf(Config{}),
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) {
			return broker.From(s, NewPublisher)
		},
		Consumer: func(s *broker.Settings) (postrider.Consumer, error) {
			return broker.From(s, NewConsumer)
		},
		Create: func(_ context.Context, s *broker.Settings, name string) error {
			return os.MkdirAll(Config{URL: s.URL}.folder(name), 0o700)
		},
	})
}

//docs:end

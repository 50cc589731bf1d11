package cli

// The brokers that this program knows. A program with others needs one more line here: importing a package is all that it takes.
import (
	_ "github.com/postrider/postrider/broker/discard"
	_ "github.com/postrider/postrider/broker/kafka"
	_ "github.com/postrider/postrider/broker/nats"
	_ "github.com/postrider/postrider/broker/pubsub"
	_ "github.com/postrider/postrider/broker/pulsar"
	_ "github.com/postrider/postrider/broker/rabbitmq"
	_ "github.com/postrider/postrider/broker/redis"
	_ "github.com/postrider/postrider/broker/redis/asynq"
	_ "github.com/postrider/postrider/broker/sqs"
	_ "github.com/postrider/postrider/broker/stdout"
	_ "github.com/postrider/postrider/broker/webhook"
)

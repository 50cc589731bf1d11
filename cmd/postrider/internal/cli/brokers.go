package cli

import (
	// The brokers of this program. To add another, import its package here.
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

package rabbitmq_test

import (
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/broker/rabbitmq"
)

// Settings of the client that no option covers.
func ExampleConfig_client() {
	p, err := rabbitmq.NewPublisher(rabbitmq.Config{
		URL:    "amqp://relay:secret@rabbit-1:5672,rabbit-2:5672,rabbit-3:5672/",
		Client: amqp.Config{ChannelMax: 64, Heartbeat: 3 * time.Second, Properties: amqp.Table{"product": "shop"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_, err = rabbitmq.NewPublisher(rabbitmq.Config{URL: "amqp://localhost", Client: amqp.Config{Recovery: new(amqp.Recovery)}})
	fmt.Println(err)
	// Output: rabbitmq: the client has Recovery: a channel that recovers by itself loses what was not confirmed
}

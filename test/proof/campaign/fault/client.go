package fault

import (
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// clientKinds are faults of the product's clients: producers, consumers, and the webhook receiver,
// which is also a consumer.
func clientKinds() []Kind {
	consumers := []string{theConsumers}
	return []Kind{
		{
			Name: "producer-kill", Doc: "a producer is killed in the middle of its transactions", Weight: 5,
			Shortest: time.Second, Longest: 5 * time.Second, Begin: killProcess(world.Producer, []string{record.Producer}),
		},
		{
			Name: "consumer-kill", Doc: "a consumer is killed in the middle of its handlers", Weight: 8, Shares: consumers,
			Shortest: time.Second, Longest: 6 * time.Second, Begin: killProcess(world.Consumer, []string{record.Consumer}),
		},
		{
			Name: "consumer-pause", Doc: "a consumer does nothing for a while", Weight: 5, Shares: consumers,
			Shortest: 2 * time.Second, Longest: 12 * time.Second, Begin: pauseProcess(world.Consumer, []string{record.Consumer}),
		},
		{
			Name: "receiver-kill", Doc: "the receiver of webhooks is killed in the middle of its requests", Weight: 4, Destination: world.HTTP,
			Claims: []string{world.HTTP}, Shares: consumers,
			Shortest: time.Second, Longest: 5 * time.Second, Begin: killProcess(world.Receiver, []string{record.Consumer, world.HTTP}),
		},
	}
}

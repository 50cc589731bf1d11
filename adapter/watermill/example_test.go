package watermill_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/memory"
)

// A relay whose destination is a Watermill publisher. In a real program the store is a database,
// and the publisher comes from watermill-kafka, -amqp, -redisstream or another package.
func ExampleNewDestination() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	store := memory.Open(memory.Config{})
	publisher := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil)
	arrived, err := publisher.Subscribe(ctx, "order")
	if err != nil {
		fmt.Println(err)
		return
	}
	//docs:begin destination
	destination, err := watermill.NewDestination(publisher, watermill.Config{})
	//docs:skip
	if err != nil {
		fmt.Println(err)
		return
	}
	//docs:resume
	r, err := relay.New(store, destination, relay.Config{Logger: slog.New(slog.DiscardHandler)})
	//docs:end
	if err != nil {
		fmt.Println(err)
		return
	}
	stopped := make(chan error)
	go func() { stopped <- r.Run(ctx) }()

	err = store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		return store.Enqueue(ctx, tx, postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, map[string]int{"items": 3}))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := <-arrived
	m.Ack()
	fmt.Println(m.Metadata["ce-type"], m.Metadata[watermill.MetadataKey], string(m.Payload))

	stop()
	fmt.Println(<-stopped)
	// Output:
	// order.placed order/42 {"items":3}
	// <nil>
}

// A Watermill publisher for one transaction. Here it is the memory store's; with store/postgres it
// is a *sql.Tx or a pgx.Tx.
func ExampleNewPublisher() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	err := store.Do(ctx, func(ctx context.Context, tx *memory.Tx) error {
		var publisher message.Publisher = watermill.NewPublisher(ctx, store, tx, watermill.PublisherConfig{KeyMetadata: "order_id"})
		m := message.NewMessageWithContext(ctx, "4d47e190-0402-4048-bc2c-89dd54343cdc", []byte(`{"total": 7}`))
		m.Metadata.Set("order_id", "42")
		return publisher.Publish("orders", m)
	})
	fmt.Println(err)
	// Output:
	// <nil>
}

// A Watermill handler that needs the message as it was enqueued.
func ExampleCodec_Decode() {
	codec, err := watermill.NewCodec(watermill.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	topic, arrived := codec.Encode(&sent)
	//docs:begin decode
	m, err := codec.Decode(topic, arrived)
	//docs:end
	fmt.Println(m.Type, m.OrderKey(), m.ID == sent.ID, err)
	// Output:
	// order.placed order/42 true <nil>
}

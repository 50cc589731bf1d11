package schema_test

import (
	"context"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/memory"
)

// Protocol Buffers without a registry: producer and consumer share the generated code.
func Example() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})

	billing, err := inbox.New(store.Inbox(), "billing", inbox.Config{
		Codecs: map[string]inbox.Codec{schema.ContentProtobuf: schema.Protobuf{}},
	})
	if err != nil {
		panic(err)
	}
	inbox.On(billing, "order.placed", func(_ context.Context, _ *memory.Tx, o *shop.OrderPlaced) error {
		fmt.Printf("charge %d cents for order %s\n", o.GetTotal().GetCents(), o.GetId())
		return nil
	})

	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	order := &shop.OrderPlaced{Id: "42", Total: &shop.Money{Currency: "EUR", Cents: 1999}}
	if err := (schema.Protobuf{}).Encode(ctx, &m, order); err != nil {
		panic(err)
	}
	fmt.Println(m.ContentType, len(m.Payload), "bytes")
	if err := billing.Receive(ctx, m); err != nil {
		panic(err)
	}
	// Output:
	// application/protobuf 14 bytes
	// charge 1999 cents for order 42
}

// Avro without a registry: a consumer with a newer schema lists the older ones.
func ExampleNewAvro() {
	ctx := context.Background()
	const (
		first = `{"type":"record","name":"Order","namespace":"shop","fields":[
			{"name":"id","type":"string"}, {"name":"cents","type":"int"}]}`
		second = `{"type":"record","name":"Order","namespace":"shop","fields":[
			{"name":"id","type":"string"}, {"name":"cents","type":"long"}, {"name":"currency","type":"string","default":"EUR"}]}`
	)
	type OrderBefore struct {
		ID    string `avro:"id"`
		Cents int32  `avro:"cents"`
	}
	type Order struct {
		ID       string `avro:"id"`
		Cents    int64  `avro:"cents"`
		Currency string `avro:"currency"`
	}
	producer, err := schema.NewAvro(schema.AvroConfig{Types: []schema.AvroType{{Value: OrderBefore{}, Schema: first}}})
	if err != nil {
		panic(err)
	}
	consumer, err := schema.NewAvro(schema.AvroConfig{Types: []schema.AvroType{{Value: Order{}, Schema: second, Older: []string{first}}}})
	if err != nil {
		panic(err)
	}

	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	if err := producer.Encode(ctx, &m, OrderBefore{"42", 1999}); err != nil {
		panic(err)
	}
	var o Order
	if err := consumer.Decode(ctx, &m, &o); err != nil {
		panic(err)
	}
	fmt.Printf("%+v\n", o)
	// Output: {ID:42 Cents:1999 Currency:EUR}
}

package schema_test

import (
	"context"
	"os"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/memory"
)

const orderSchema = orderV1

// service is the code shown in docs/consuming.md and docs/producing/go.md, with an in-memory store.
type service struct {
	store  *memory.DB
	avro   *schema.Avro
	placed []Order
	gone   []string
}

func newAvroCodec() (*schema.Avro, error) {
	//docs:begin registry
	registry, err := schema.NewRegistry(schema.RegistryConfig{
		URL:      os.Getenv("REGISTRY_URL"), // such as https://registry.example.com
		User:     os.Getenv("REGISTRY_USER"),
		Password: os.Getenv("REGISTRY_PASSWORD"),
	})
	if err != nil {
		return nil, err
	}
	return schema.NewAvro(schema.AvroConfig{
		Registry: registry,
		Types:    []schema.AvroType{{Value: Order{}, Schema: orderSchema}}, // fields have tags such as avro:"cents"
	})
	//docs:end
}

func (s *service) consumer() (*inbox.Inbox[*memory.Tx], error) {
	store, avro, charge, refund := s.store.Inbox(), s.avro, s.charge, s.refund
	//docs:begin codecs
	billing, err := inbox.New(store, "billing", inbox.Config{Codecs: map[string]inbox.Codec{
		schema.ContentProtobuf: schema.Protobuf{},
		schema.ContentAvro:     avro,
	}})
	if err != nil {
		return nil, err
	}
	inbox.On(billing, "order.placed", charge)    // takes an Order
	inbox.On(billing, "order.cancelled", refund) // takes a *shop.OrderCancelled, which protoc has generated
	//docs:end
	return billing, nil
}

func (s *service) charge(_ context.Context, _ *memory.Tx, o Order) error {
	s.placed = append(s.placed, o)
	return nil
}

func (s *service) refund(_ context.Context, _ *memory.Tx, o *shop.OrderCancelled) error {
	s.gone = append(s.gone, o.GetId())
	return nil
}

func orderPlaced(ctx context.Context, avro *schema.Avro, order Order) (postrider.Message, error) {
	//docs:begin avro
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: order.ID}, nil)
	err := avro.Encode(ctx, &m, order) // before the transaction begins: the first one asks the registry
	//docs:end
	return m, err
}

func orderCancelled(ctx context.Context, id string) (postrider.Message, error) {
	//docs:begin protobuf
	m := postrider.Event("order.cancelled", postrider.Aggregate{Type: "order", ID: id}, nil)
	err := schema.Protobuf{}.Encode(ctx, &m, &shop.OrderCancelled{Id: id, Reason: "no pony"})
	//docs:end
	return m, err
}

// TestDocs runs the code shown in the docs.
func TestDocs(t *testing.T) {
	t.Setenv("REGISTRY_URL", realURL(t))
	avro, err := newAvroCodec()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{store: memory.Open(memory.Config{}), avro: avro}
	billing, err := s.consumer()
	if err != nil {
		t.Fatal(err)
	}
	first, err := orderPlaced(t.Context(), avro, Order{"42", 1999})
	if err != nil {
		t.Fatal(err)
	}
	second, err := orderCancelled(t.Context(), "43")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []postrider.Message{first, second} {
		if err := billing.Receive(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.placed) != 1 || s.placed[0] != (Order{"42", 1999}) || len(s.gone) != 1 || s.gone[0] != "43" {
		t.Errorf("placed %v, gone %v", s.placed, s.gone)
	}
}

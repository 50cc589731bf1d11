package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
)

// Placed is shop.OrderPlaced for JSON and Avro.
type Placed struct {
	ID    string   `json:"id" avro:"id"`
	Total Total    `json:"total" avro:"total"`
	At    int64    `json:"at" avro:"at"`
	Items []string `json:"items" avro:"items"`
}

// Total is the sum of an order.
type Total struct {
	Currency string `json:"currency" avro:"currency"`
	Cents    int64  `json:"cents" avro:"cents"`
}

const placedSchema = `{"type":"record","name":"Placed","namespace":"shop","fields":[
	{"name":"id","type":"string"},
	{"name":"total","type":{"type":"record","name":"Total","fields":[{"name":"currency","type":"string"},{"name":"cents","type":"long"}]}},
	{"name":"at","type":"long"},
	{"name":"items","type":{"type":"array","items":"string"}}]}`

// BenchmarkDecode decodes one order as an inbox does: JSON as inbox.On does without a codec, the
// others with their codecs. With a registry, the schema is already cached.
func BenchmarkDecode(b *testing.B) {
	order := Placed{"0198f2a4-7c11-7d0e-9f5b-3a6a5f1f0c42", Total{"EUR", 1999}, 1763373600, []string{"saddle", "bridle", "stirrup"}}
	message := &shop.OrderPlaced{
		Id: order.ID, Total: &shop.Money{Currency: "EUR", Cents: 1999}, At: &timestamppb.Timestamp{Seconds: order.At}, Items: order.Items,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":7,"schema":%q}`, placedSchema)
	}))
	defer server.Close()
	registry, err := schema.NewRegistry(schema.RegistryConfig{URL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	types := []schema.AvroType{{Value: Placed{}, Schema: placedSchema}}
	alone, known := newAvroOf(b, schema.AvroConfig{Types: types}), newAvroOf(b, schema.AvroConfig{Types: types, Registry: registry})
	framed := postrider.Message{Payload: []byte("\x00\x00\x00\x00\x07\x00")} // as if registered

	asJSON := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, order)
	var plain, single, registered postrider.Message
	for _, err := range []error{
		schema.Protobuf{}.Encode(b.Context(), &plain, message), alone.Encode(b.Context(), &single, order), known.Encode(b.Context(), &registered, order),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	framed.Payload = append(framed.Payload, plain.Payload...)

	for _, c := range []struct {
		name   string
		m      *postrider.Message
		decode func(context.Context, *postrider.Message) error
	}{
		{"json", &asJSON, func(_ context.Context, m *postrider.Message) error {
			var value Placed
			return json.NewDecoder(bytes.NewReader(m.Payload)).Decode(&value)
		}},
		{"protobuf", &plain, func(ctx context.Context, m *postrider.Message) error {
			var value *shop.OrderPlaced
			return schema.Protobuf{}.Decode(ctx, m, &value)
		}},
		{"protobuf with an ID", &framed, func(ctx context.Context, m *postrider.Message) error {
			var value *shop.OrderPlaced
			return schema.Protobuf{}.Decode(ctx, m, &value)
		}},
		{"avro", &single, func(ctx context.Context, m *postrider.Message) error {
			var value Placed
			return alone.Decode(ctx, m, &value)
		}},
		{"avro with an ID", &registered, func(ctx context.Context, m *postrider.Message) error {
			var value Placed
			return known.Decode(ctx, m, &value)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.decode(b.Context(), c.m); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(c.m.Payload)), "payload-bytes")
		})
	}
}

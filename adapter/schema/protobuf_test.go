package schema_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
)

func placed() *shop.OrderPlaced {
	return &shop.OrderPlaced{
		Id: "42", Total: &shop.Money{Currency: "EUR", Cents: 1999}, At: &timestamppb.Timestamp{Seconds: 1763373600}, Items: []string{"saddle", "bridle"},
	}
}

func TestProtobuf(t *testing.T) {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	m.SchemaID = "kept"
	if err := (schema.Protobuf{}).Encode(t.Context(), &m, placed()); err != nil {
		t.Fatal(err)
	}
	plain, err := proto.Marshal(placed())
	if err != nil {
		t.Fatal(err)
	}
	if m.ContentType != "application/protobuf" || m.SchemaID != "kept" || !bytes.Equal(m.Payload, plain) || m.Validate() != nil {
		t.Errorf("got %+v", m)
	}
	framed := m
	framed.Payload = append([]byte("\x00\x00\x00\x00\x07\x00"), plain...)
	for name, m := range map[string]*postrider.Message{"plain": &m, "with a schema ID": &framed} {
		var pointer *shop.OrderPlaced // as inbox.On does for a handler that takes a pointer
		if err := (schema.Protobuf{}).Decode(t.Context(), m, &pointer); err != nil || !proto.Equal(pointer, placed()) {
			t.Errorf("%s: got %v, %v", name, pointer, err)
		}
		value := new(shop.OrderPlaced)
		if err := (schema.Protobuf{}).Decode(t.Context(), m, value); err != nil || !proto.Equal(value, placed()) {
			t.Errorf("%s: got %v, %v", name, value, err)
		}
	}
}

// TestEmptyProtobuf checks that a message with all fields at their defaults, which encodes to no
// bytes, is a valid payload.
func TestEmptyProtobuf(t *testing.T) {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	if err := (schema.Protobuf{}).Encode(t.Context(), &m, new(shop.OrderPlaced)); err != nil || m.Payload == nil || len(m.Payload) != 0 {
		t.Fatalf("got %#v, %v", m.Payload, err)
	}
	var got *shop.OrderPlaced
	if err := (schema.Protobuf{}).Decode(t.Context(), &m, &got); err != nil || got == nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestNewerProtobuf checks that fields added by a newer sender are ignored.
func TestNewerProtobuf(t *testing.T) {
	m := postrider.Message{Payload: []byte("\x0a\x0242\xfa\x7f\x03new")}
	var got *shop.OrderPlaced
	if err := (schema.Protobuf{}).Decode(t.Context(), &m, &got); err != nil || got.GetId() != "42" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestProtobufRefuses(t *testing.T) {
	for name, payload := range map[string]string{
		"JSON": `{"id":"42"}`, "cut off": "\x0a\x0a42", "no ID": "\x00\x00\x00", "no indexes": "\x00\x00\x00\x00\x07", "no such indexes": "\x00\x00\x00\x00\x07\x01",
		"indexes cut off": "\x00\x00\x00\x00\x07\x04\x02", "no UTF-8": "\x0a\x02\xff\xff",
	} {
		var got *shop.OrderPlaced
		if err := (schema.Protobuf{}).Decode(t.Context(), &postrider.Message{Payload: []byte(payload)}, &got); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var text string
	var number *int
	for _, into := range []any{nil, &text, &number, (**shop.OrderPlaced)(nil)} {
		if err := (schema.Protobuf{}).Decode(t.Context(), &postrider.Message{}, into); err == nil || !strings.Contains(err.Error(), "want a pointer") {
			t.Errorf("into %T: got %v", into, err)
		}
	}
	for _, value := range []proto.Message{nil, (*shop.OrderPlaced)(nil), &shop.OrderPlaced{Id: "\xff"}} {
		m := postrider.Message{ContentType: "as before"}
		if err := (schema.Protobuf{}).Encode(t.Context(), &m, value); err == nil || m.ContentType != "as before" {
			t.Errorf("encoding %v: got %v, %+v", value, err, m)
		}
	}
}

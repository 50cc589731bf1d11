package schema_test

import (
	"encoding/hex"
	"io"
	"log"
	"reflect"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/adapter/schema/internal/shop"
)

var quiet = log.New(io.Discard, "", 0)

// Three versions of one schema.
const (
	orderV1 = `{"type":"record","name":"Order","namespace":"shop","fields":[
		{"name":"id","type":"string"},
		{"name":"cents","type":"int"}]}`
	orderV2 = `{"type":"record","name":"Order","namespace":"shop","fields":[
		{"name":"id","type":"string"},
		{"name":"total","aliases":["cents"],"type":"long"},
		{"name":"currency","type":"string","default":"EUR"},
		{"name":"note","type":["null","string"],"default":null}]}`
	incompatible = `{"type":"record","name":"Order","namespace":"shop","fields":[
		{"name":"id","type":"string"},
		{"name":"weight","type":"double"}]}`
)

// Order matches orderV1.
type Order struct {
	ID    string `avro:"id"`
	Cents int    `avro:"cents"`
}

// OrderV2 matches orderV2.
type OrderV2 struct {
	ID       string  `avro:"id"`
	Total    int64   `avro:"total"`
	Currency string  `avro:"currency"`
	Note     *string `avro:"note"`
}

func newAvro(t testing.TB, r *schema.Registry, text string) *schema.Avro {
	t.Helper()
	types := []schema.AvroType{{Value: Order{}, Schema: text}}
	if text == orderV2 {
		types[0].Value = OrderV2{}
	}
	return newAvroOf(t, schema.AvroConfig{Registry: r, Types: types})
}

func newAvroOf(t testing.TB, cfg schema.AvroConfig) *schema.Avro {
	t.Helper()
	a, err := schema.NewAvro(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAvroWithoutRegistry(t *testing.T) {
	v1 := newAvro(t, nil, orderV1)
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, nil)
	m.SchemaID = "kept"
	if err := v1.Encode(t.Context(), &m, &Order{"42", 700}); err != nil {
		t.Fatal(err)
	}
	if m.ContentType != "application/avro" || m.SchemaID != "kept" || m.Validate() != nil {
		t.Errorf("got %+v", m)
	}
	var same Order
	if err := v1.Decode(t.Context(), &m, &same); err != nil || same != (Order{"42", 700}) {
		t.Errorf("got %+v, %v", same, err)
	}

	v2 := newAvroOf(t, schema.AvroConfig{Types: []schema.AvroType{{Value: &OrderV2{}, Schema: orderV2, Older: []string{orderV1}}}})
	var later *OrderV2 // as inbox.On does for a handler that takes a pointer
	want := OrderV2{ID: "42", Total: 700, Currency: "EUR"}
	if err := v2.Decode(t.Context(), &m, &later); err != nil || !reflect.DeepEqual(*later, want) {
		t.Errorf("got %+v, %v, want %+v", later, err, want)
	}

	if err := v2.Encode(t.Context(), &m, want); err != nil {
		t.Fatal(err)
	}
	err := v1.Decode(t.Context(), &m, &same)
	if err == nil || !strings.Contains(err.Error(), "not known") || !strings.Contains(err.Error(), "Older of shop.Order") {
		t.Errorf("a schema that the program has never seen: got %v", err)
	}
}

// TestSingleObject uses the example of the Avro specification: a record of a long 27 and a string
// "foo".
func TestSingleObject(t *testing.T) {
	const text = `{"type":"record","name":"test","fields":[{"name":"a","type":"long"},{"name":"b","type":"string"}]}`
	type test struct {
		A int64  `avro:"a"`
		B string `avro:"b"`
	}
	a := newAvroOf(t, schema.AvroConfig{Types: []schema.AvroType{{Value: test{}, Schema: text}}})
	var m postrider.Message
	if err := a.Encode(t.Context(), &m, test{27, "foo"}); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(m.Payload); !strings.HasPrefix(got, "c301") || len(m.Payload) != 15 || got[20:] != "3606666f6f" {
		t.Errorf("got %s, want c301, 8 bytes, 3606666f6f", got)
	}
}

func TestAvroRefuses(t *testing.T) {
	a := newAvro(t, nil, orderV1)
	var good postrider.Message
	if err := a.Encode(t.Context(), &good, Order{"42", 700}); err != nil {
		t.Fatal(err)
	}
	for name, payload := range map[string]string{
		"empty": "", "JSON": `{"id":"42","cents":700}`, "cut off": string(good.Payload[:len(good.Payload)-1]), "more": string(good.Payload) + "x",
		"a length of 2^62": string(good.Payload[:10]) + "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
	} {
		if err := a.Decode(t.Context(), &postrider.Message{Payload: []byte(payload)}, new(Order)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, into := range map[string]any{"nil": nil, "no pointer": Order{}, "nil pointer": (*Order)(nil), "another type": new(OrderV2)} {
		if err := a.Decode(t.Context(), &good, into); err == nil {
			t.Errorf("into %s: no error", name)
		}
	}
	before := good
	for name, value := range map[string]any{"nil": nil, "nil pointer": (*Order)(nil), "another type": OrderV2{}} {
		if err := a.Encode(t.Context(), &good, value); err == nil || !reflect.DeepEqual(good, before) {
			t.Errorf("encoding %s: got %v, %+v", name, err, good)
		}
	}
}

func TestAvroConfig(t *testing.T) {
	registry := newRegistry(t, schema.RegistryConfig{URL: "http://localhost:1"})
	_, err := schema.NewAvro(schema.AvroConfig{Registry: registry, Types: []schema.AvroType{
		{Schema: orderV1},
		{Value: Order{}, Schema: `{"type":"record"}`},
		{Value: OrderV2{}, Schema: orderV2, Older: []string{incompatible}},
		{Value: &OrderV2{}, Schema: orderV2},
		{Value: "", Schema: `"string"`},
	}})
	for _, want := range []string{"Types[0]", "Value is nil", "Types[1] (schema_test.Order): Schema", "Types[2] (schema_test.OrderV2): Older is set and Registry",
		"Older[0]", "Types[3] (*schema_test.OrderV2): is listed twice", "Types[4] (string): Schema: is no record"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q:\n%v", want, err)
		}
	}
	if _, err := schema.NewAvro(schema.AvroConfig{}); err == nil || !strings.Contains(err.Error(), "Types is empty") {
		t.Errorf("got %v", err)
	}
}

// FuzzDecode checks that no payload makes a codec panic, or allocate much more than the payload's
// size.
func FuzzDecode(f *testing.F) {
	a := newAvroOf(f, schema.AvroConfig{Types: []schema.AvroType{{Value: Placed{}, Schema: placedSchema}}})
	var m postrider.Message
	if err := a.Encode(f.Context(), &m, Placed{"42", Total{"EUR", 1999}, 1763373600, []string{"saddle", "bridle"}}); err != nil {
		f.Fatal(err)
	}
	f.Add(m.Payload)
	if err := (schema.Protobuf{}).Encode(f.Context(), &m, placed()); err != nil {
		f.Fatal(err)
	}
	f.Add(m.Payload)
	f.Add(append([]byte("\x00\x00\x00\x00\x07\x00"), m.Payload...))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m := postrider.Message{Payload: payload}
		var order *Placed
		var message *shop.OrderPlaced
		_ = a.Decode(t.Context(), &m, &order)
		_ = schema.Protobuf{}.Decode(t.Context(), &m, &message)
	})
}

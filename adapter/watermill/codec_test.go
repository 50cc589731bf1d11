package watermill_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/watermill"
	"github.com/postrider/postrider/broker/codec"
)

func coder(t *testing.T, cfg watermill.Config) *watermill.Codec {
	t.Helper()
	c, err := watermill.NewCodec(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoundTrip checks that a message is unchanged after a round trip through Watermill, even with
// headers that have our own names.
func TestRoundTrip(t *testing.T) {
	m := letter("42", `{"items": 3}`)
	m.Topic, m.TenantID, m.SchemaVersion, m.WireID = "orders", "acme", 2, "outbox-"+m.ID.String()
	m.OccurredAt = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	m.Headers = map[string]string{
		"traceparent": "00-1", "key": "not the key", "content-type": "not the type", "h:key": "h", "h:": "", "empty": "",
	}
	c := coder(t, watermill.Config{})
	topic, out := c.Encode(&m)
	if topic != "orders" || out.UUID != m.WireID || out.Metadata["key"] != "order/42" || out.Metadata["ce-type"] != "order.placed" ||
		out.Metadata["content-type"] != m.ContentType {
		t.Errorf("got %s, %+v", topic, out)
	}
	got, err := c.Decode(topic, out)
	if err != nil {
		t.Fatal(err)
	}
	delete(got.Headers, "ce-source") // added by the sender
	if !maps.Equal(got.Headers, m.Headers) {
		t.Errorf("headers: got %q, want %q", got.Headers, m.Headers)
	}
	got.Headers = m.Headers
	if !reflect.DeepEqual(got, m) {
		t.Errorf("got  %+v\nwant %+v", got, m)
	}
}

// TestSharesNothing checks that the caller may reuse its message while Watermill still has its
// copy.
func TestSharesNothing(t *testing.T) {
	m := letter("42", "text")
	m.Headers = map[string]string{"a": "b"}
	_, out := coder(t, watermill.Config{}).Encode(&m)
	m.Payload[0], m.Headers["a"] = 'X', "c"
	if string(out.Payload) != "text" || out.Metadata["a"] != "b" {
		t.Errorf("got %q, %q", out.Payload, out.Metadata)
	}
}

// TestUUIDOfWatermill checks that a message published with a UUID arrives with it, and not in
// metadata that marshalers refuse.
func TestUUIDOfWatermill(t *testing.T) {
	m := letter("42", "text")
	m.Headers = map[string]string{watermill.HeaderUUID: "no-uuid-1"}
	_, out := coder(t, watermill.Config{Format: codec.Raw}).Encode(&m)
	if _, there := out.Metadata[watermill.HeaderUUID]; out.UUID != "no-uuid-1" || there {
		t.Errorf("got %+v", out)
	}
}

func TestTopic(t *testing.T) {
	m := letter("42", "text")
	if topic, _ := coder(t, watermill.Config{}).Encode(&m); topic != "order" {
		t.Errorf("without a route: got %q", topic)
	}
	by := func(m *postrider.Message) string { return "all-" + m.AggregateType }
	if topic, _ := coder(t, watermill.Config{Topic: by}).Encode(&m); topic != "all-order" {
		t.Errorf("with a function: got %q", topic)
	}
}

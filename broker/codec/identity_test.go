package codec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// event returns another sender's CloudEvent.
func event(id, source string) *codec.Packet {
	return &codec.Packet{Name: "orders", Headers: []codec.Header{
		{Name: "ce_specversion", Value: "1.0"}, {Name: "ce_id", Value: id}, {Name: "ce_source", Value: source}, {Name: "ce_type", Value: "t"},
	}}
}

func decode(t *testing.T, p *codec.Packet) postrider.Message {
	t.Helper()
	m, err := coder(t, codec.CloudEvents, dialects["kafka"]).Decode(p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestIdentityOfOthers checks that messages are the same if and only if both source and ID are
// equal.
func TestIdentityOfOthers(t *testing.T) {
	const u4, u7 = "8c6f1c1e-6f0a-4c9c-9a35-0d5b3bb1d6b1", "01931c1e-6f0a-7c9c-9a35-0d5b3bb1d6b1"
	packets := map[string]*codec.Packet{}
	for _, source := range []string{"/shop", "/crm", "postrider", "/sho"} {
		for _, id := range []string{"1001", "created-" + u4, "cancelled-" + u4, u4, u7, "p1001", "@0/7"} {
			packets["event "+source+" "+id] = event(id, source)
		}
	}
	for _, topic := range []string{"orders", "stock"} {
		for _, id := range []string{"1001", "created-" + u4, "cancelled-" + u4} {
			packets[topic+" "+id] = &codec.Packet{Name: topic, Headers: []codec.Header{{Name: "message-id", Value: id}}}
		}
		for _, place := range []string{"0/7", "0/8", "1/7"} {
			packets[topic+" at "+place] = &codec.Packet{Name: topic, Place: place, Body: []byte("the same")}
		}
	}
	seen := make(map[postrider.ID]string)
	for name, p := range packets {
		id := decode(t, p).ID
		if other, ok := seen[id]; ok || id.IsZero() {
			t.Errorf("%s and %s are both %s", name, other, id)
		}
		seen[id] = name
		if again := decode(t, p).ID; again != id {
			t.Errorf("%s is %s, and then %s", name, id, again)
		}
	}
	// The derived ID keeps the time, which tells an inbox where to look and whether the message is
	// late.
	own, _ := postrider.ParseID(u7)
	if id := decode(t, event(u7, "/shop")).ID; id == own || !id.Time().Equal(own.Time()) {
		t.Errorf("%s of %s became %s of %s", own, own.Time(), id, id.Time())
	}
	for _, id := range []string{u4, "1001", "created-" + u7} {
		if got := decode(t, event(id, "/shop")).ID; !got.Time().IsZero() {
			t.Errorf("%s became %s, which has a time", id, got)
		}
	}
	// Without a source, a UUID is used unchanged.
	if m := decode(t, &codec.Packet{Name: "stock", Headers: []codec.Header{{Name: "message-id", Value: strings.ToUpper(u7)}}}); m.ID != own {
		t.Errorf("got %s", m.ID)
	}
	if m := decode(t, &codec.Packet{Name: "stock"}); !m.ID.IsZero() || m.WireID != "" {
		t.Errorf("a message of which nothing is known is %s", m.ID)
	}
}

// TestIdentityOfOurs checks that consumers recover the ID that a message was enqueued with,
// whatever its format, source and route, without knowing these.
func TestIdentityOfOurs(t *testing.T) {
	for _, source := range []string{"", "/orders", "https://shop.example.com/orders"} {
		for _, form := range []string{"", "verify_%s", "outbox-7", "%s"} {
			m := postrider.Message{ID: postrider.NewID(), Type: "t", Topic: "jobs"}
			if m.WireID = form; strings.Contains(form, "%s") {
				m.WireID = fmt.Sprintf(form, m.ID)
			}
			for _, format := range codec.Formats() {
				for name, dialect := range dialects {
					sender, err := codec.NewCodec(format, source, dialect)
					if err != nil {
						t.Fatal(err)
					}
					reader := format
					if format == codec.CloudEventsStructured || format == codec.Raw {
						reader = ""
					}
					receiver, err := codec.NewCodec(reader, "", dialect)
					if err != nil {
						t.Fatal(err)
					}
					var p codec.Packet
					sender.Encode(&m, &p)
					got, err := receiver.Decode(&p)
					if err != nil || got.ID != m.ID || got.BrokerID() != m.BrokerID() {
						t.Errorf("%s/%s: %s of %q is %s, known as %s: %v", format, name, m.BrokerID(), source, got.ID, got.BrokerID(), err)
					}
				}
			}
		}
	}
}

// TestProofIsNotInherited checks that an event that another sender derived from one of ours has its
// own identity.
func TestProofIsNotInherited(t *testing.T) {
	m := postrider.Message{ID: postrider.NewID(), Type: "t"}
	var p, routed codec.Packet
	coder(t, codec.CloudEvents, dialects["kafka"]).Encode(&m, &p)
	if got := decode(t, &p); got.ID != m.ID {
		t.Fatalf("got %s, want %s", got.ID, m.ID)
	}
	m.WireID = "verify_" + m.ID.String()
	coder(t, codec.CloudEvents, dialects["kafka"]).Encode(&m, &routed)
	if got := decode(t, &routed); got.ID != m.ID {
		t.Fatalf("got %s, want %s", got.ID, m.ID)
	}
	for attribute, value := range map[string]string{"ce_source": "/enricher", "ce_id": postrider.NewID().String()} {
		for _, p := range []codec.Packet{p, routed} {
			changed := p
			changed.Headers = append([]codec.Header(nil), p.Headers...)
			for i := range changed.Headers {
				if changed.Headers[i].Name == attribute {
					changed.Headers[i].Value = value
				}
			}
			if got := decode(t, &changed); got.ID == m.ID {
				t.Errorf("with another %s it is the same message", attribute)
			}
		}
	}
	for _, nonsense := range []string{"", ":", m.ID.String(), m.ID.String() + ":", "x:1"} {
		other := *event("1001", "/crm")
		other.Headers = append(other.Headers, codec.Header{Name: "ce_postrider", Value: nonsense})
		if got := decode(t, &other); got.ID != codec.Identity("/crm", "1001") {
			t.Errorf("a proof %q makes it %s", nonsense, got.ID)
		}
	}
	// A forwarded message does not carry the proof of the original.
	m.WireID, m.Headers = "", map[string]string{"postrider-id": "x", "ce_postrider": "x"}
	for format, name := range map[codec.Format]string{codec.CloudEvents: "ce_postrider", codec.Raw: "postrider-id", codec.Debezium: "postrider-id"} {
		coder(t, format, dialects["kafka"]).Encode(&m, &p)
		if value, _ := p.Header(name); value == "x" {
			t.Errorf("%s sends the message's own %s", format, name)
		}
	}
}

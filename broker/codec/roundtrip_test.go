package codec_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

var dialects = map[string]codec.Dialect{
	"http":  {Prefix: "ce-", Percent: true},
	"nats":  {Prefix: "ce-", Percent: true, NoContentType: true},
	"kafka": {Prefix: "ce_", NoID: true},
	"amqp":  {Prefix: "cloudEvents_"},
	"plain": {},
}

func coder(t testing.TB, f codec.Format, d codec.Dialect) *codec.Codec {
	t.Helper()
	c, err := codec.NewCodec(f, "/orders", d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoundTrip sends random messages through every format and dialect and compares the result with
// carried.
func TestRoundTrip(t *testing.T) {
	for _, format := range codec.Formats() {
		for name, dialect := range dialects {
			t.Run(fmt.Sprintf("%s/%s", format, name), func(t *testing.T) {
				c := coder(t, format, dialect)
				random := rand.New(rand.NewPCG(1, 2))
				var p codec.Packet
				for range 600 {
					m := randomMessage(random)
					before := clone(m)
					c.Encode(&m, &p)
					if !reflect.DeepEqual(m, before) {
						t.Fatalf("Encode has changed the message")
					}
					got, err := c.Decode(&p)
					if err != nil {
						t.Fatalf("%+v\nbecame %+v: %v", m, p, err)
					}
					want := carried(&m, format, dialect)
					if !got.OccurredAt.Equal(want.OccurredAt) {
						t.Fatalf("time: got %v, want %v", got.OccurredAt, want.OccurredAt)
					}
					got.OccurredAt, want.OccurredAt = time.Time{}, time.Time{}
					if !bytes.Equal(got.Payload, want.Payload) {
						t.Fatalf("payload: got %q, want %q", got.Payload, want.Payload)
					}
					got.Payload, want.Payload = nil, nil
					if !maps.Equal(got.Headers, want.Headers) {
						t.Fatalf("headers: got %q, want %q", got.Headers, want.Headers)
					}
					got.Headers, want.Headers = nil, nil
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("got  %+v\nwant %+v\nfrom %+v", got, want, p)
					}
				}
			})
		}
	}
}

// carried returns the part of a message that a format preserves.
func carried(m *postrider.Message, f codec.Format, d codec.Dialect) postrider.Message {
	prefix := d.Prefix
	if prefix == "" {
		prefix = "ce-"
	}
	name := cmp.Or(m.Topic, m.AggregateType, m.Type)
	if f == codec.Raw || f == codec.Debezium || d.ByType {
		name = cmp.Or(m.Topic, m.Type)
	}
	want := postrider.Message{
		ID: m.ID, WireID: m.BrokerID(), Topic: name, Payload: m.Payload, ContentType: m.ContentType,
		SchemaVersion: 1, Headers: maps.Clone(m.Headers),
	}
	if want.Headers == nil {
		want.Headers = map[string]string{}
	}
	switch f {
	case codec.CloudEvents, codec.CloudEventsStructured:
		want.Type = m.Type
		want.AggregateType, want.AggregateID = m.AggregateType, m.AggregateID
		if want.Key = m.Key; m.Key == want.AggregateType+"/"+want.AggregateID && want.OrderKey() != "/" {
			want.Key = ""
		}
		want.TenantID, want.SchemaID, want.DedupKey = m.TenantID, m.SchemaID, m.DedupKey
		want.CorrelationID, want.CausationID = m.CorrelationID, m.CausationID
		want.SchemaVersion = max(1, m.SchemaVersion)
		if m.OccurredAt.Year() <= 9999 {
			want.OccurredAt = m.OccurredAt
		}
		want.Headers[prefix+"source"] = "/orders"
	case codec.Raw:
		want.Type, want.Key = name, m.OrderKey()
		if d.NoID {
			delete(want.Headers, "message-id")
		}
	case codec.Envelope:
		want.Type, want.AggregateType, want.AggregateID = m.Type, m.AggregateType, m.AggregateID
		if want.Key = m.OrderKey(); want.Key == (&postrider.Message{AggregateType: m.AggregateType, AggregateID: m.AggregateID}).OrderKey() {
			want.Key = ""
		}
		if m.OccurredAt.Year() <= 9999 {
			want.OccurredAt = m.OccurredAt
		}
		if d.NoID {
			delete(want.Headers, "message-id")
		}
	case codec.Debezium:
		delete(want.Headers, "id")
		delete(want.Headers, "eventType")
		want.Type, want.Key = m.Type, m.OrderKey()
		if m.Key == "" && m.AggregateID != "" {
			want.Key = m.AggregateID
		}
		if m.Topic == "" && m.AggregateType != "" {
			want.Topic = "outbox.event." + m.AggregateType
			want.AggregateType, want.AggregateID, want.Key = m.AggregateType, want.Key, ""
		}
	}
	return want
}

func clone(m postrider.Message) postrider.Message {
	m.Payload = bytes.Clone(m.Payload)
	m.Headers = maps.Clone(m.Headers)
	return m
}

func randomMessage(r *rand.Rand) postrider.Message {
	m := postrider.Message{
		ID:            postrider.NewID(),
		Type:          "t" + text(r),
		AggregateType: text(r),
		AggregateID:   text(r),
		Key:           text(r),
		Topic:         text(r),
		TenantID:      text(r),
		Payload:       payload(r),
		ContentType:   []string{"", "application/json", "text/plain; charset=utf-8", "application/problem+json", "image/png"}[r.IntN(5)],
		SchemaVersion: r.IntN(4),
		SchemaID:      []string{"", "https://example.com/s.json", "urn:x:1", "orders-value 3", "12"}[r.IntN(5)],
		DedupKey:      text(r),
		CorrelationID: text(r),
		CausationID:   text(r),
		RoutingKey:    "not carried",
		Priority:      7,
	}
	switch r.IntN(4) {
	case 0:
		m.OccurredAt = time.Unix(r.Int64N(4e9), r.Int64N(1e9))
	case 1:
		m.OccurredAt = time.Date(10000+r.IntN(9), 1, 1, 0, 0, 0, 0, time.UTC)
	case 2:
		m.OccurredAt = time.Unix(r.Int64N(4e9), 0).In(time.FixedZone("", 5*3600))
	}
	if r.IntN(3) == 0 {
		m.WireID = "verify_" + m.ID.String()
	}
	if r.IntN(4) == 0 {
		m.Key = m.AggregateType + "/" + m.AggregateID
	}
	for _, name := range []string{"traceparent", "X-Mixed", "id", "eventType", "message-id", "schön"} {
		if r.IntN(3) == 0 {
			if m.Headers == nil {
				m.Headers = map[string]string{}
			}
			m.Headers[name] = text(r)
		}
	}
	return m
}

var pieces = []string{"order", "42", " ", "%", "%41", "\"", "\\", "ä", "世界", "😀", "\n", "\t", "/", ":", ",", "<&>", "\x7f", "\u2028"}

func text(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func payload(r *rand.Rand) []byte {
	fixed := []string{
		``, `null`, `1`, `"text"`, `{"n": 634866135153775564, "a":[1, 2]}`, " {\"a\":1}\n", `{"a":1} `, `{"a"`, `1,"id":"x"`,
		"\"\xff\"", "{\"a\":\"\\u0041\"}", strings.Repeat("[", 400) + strings.Repeat("]", 400), "plain text", "\xef\xbb\xbf{}",
	}
	if n := r.IntN(len(fixed) + 3); n < len(fixed) {
		return []byte(fixed[n])
	}
	b := make([]byte, r.IntN(40))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Package codec_test checks encoding and decoding against the official libraries of CloudEvents and
// Standard Webhooks.
package codec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

var overHTTP = codec.Dialect{Prefix: "ce-", Percent: true}

func coder(t *testing.T, format codec.Format) *codec.Codec {
	t.Helper()
	c, err := codec.NewCodec(format, "https://shop.example.com/orders", overHTTP)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func full(payload, contentType string) postrider.Message {
	return postrider.Message{
		ID: postrider.NewID(), Type: "order.placed", AggregateType: "order", AggregateID: "42", Key: "customer-7", Topic: "orders",
		TenantID: "acme", Payload: []byte(payload), ContentType: contentType, SchemaVersion: 3, SchemaID: "https://example.com/order.json",
		DedupKey: "order:42", CorrelationID: "c-1", CausationID: "c-0",
		OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC),
		Headers:    map[string]string{"ce-myext": "mine", "traceparent": "00-1"},
	}
}

func request(p *codec.Packet) *http.Request {
	r := &http.Request{Method: http.MethodPost, Header: make(http.Header), Body: io.NopCloser(bytes.NewReader(p.Body))}
	for _, h := range p.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	r.Header.Set("Content-Type", p.ContentType)
	return r
}

func packet(t *testing.T, r *http.Request) *codec.Packet {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	p := &codec.Packet{Name: "orders", ContentType: r.Header.Get("Content-Type"), Body: body}
	for name, values := range r.Header {
		if name != "Content-Type" {
			p.Headers = append(p.Headers, codec.Header{Name: strings.ToLower(name), Value: values[0]})
		}
	}
	return p
}

var payloads = []struct{ name, payload, contentType string }{
	{"JSON", `{"total": 12.50}`, "application/json"},
	{"JSON with blanks", " {\"total\": 12.50}\n", "application/json"},
	{"text", "plain <text> with \"quotes\"", "text/plain"},
	{"bytes", "\x00\xff\xfe", "application/octet-stream"},
}

// TestSDKReadsOurs encodes with our codec and decodes with the SDK.
func TestSDKReadsOurs(t *testing.T) {
	for _, format := range []codec.Format{codec.CloudEvents, codec.CloudEventsStructured} {
		for _, c := range payloads {
			t.Run(string(format)+"/"+c.name, func(t *testing.T) {
				m := full(c.payload, c.contentType)
				var p codec.Packet
				coder(t, format).Encode(&m, &p)
				message := cehttp.NewMessageFromHttpRequest(request(&p))
				want := binding.EncodingBinary
				if format == codec.CloudEventsStructured {
					want = binding.EncodingStructured
				}
				if got := message.ReadEncoding(); got != want {
					t.Fatalf("the SDK takes it for %v", got)
				}
				e, err := binding.ToEvent(context.Background(), message)
				if err != nil {
					t.Fatal(err)
				}
				if err := e.Validate(); err != nil {
					t.Errorf("the SDK finds: %v", err)
				}
				for name, pair := range map[string][2]string{
					"specversion": {e.SpecVersion(), "1.0"}, "id": {e.ID(), m.ID.String()}, "type": {e.Type(), m.Type},
					"source": {e.Source(), "https://shop.example.com/orders"}, "subject": {e.Subject(), "42"},
					"dataschema": {e.DataSchema(), m.SchemaID}, "datacontenttype": {e.DataContentType(), c.contentType},
					"data": {string(e.Data()), c.payload},
				} {
					if pair[0] != pair[1] {
						t.Errorf("%s: the SDK reads %q, want %q", name, pair[0], pair[1])
					}
				}
				if !e.Time().Equal(m.OccurredAt) {
					t.Errorf("time: the SDK reads %v, want %v", e.Time(), m.OccurredAt)
				}
				for name, want := range map[string]string{
					"aggregatetype": "order", "partitionkey": "customer-7", "tenantid": "acme", "schemaversion": "3", "correlationid": "c-1",
					"causationid": "c-0", "dedupkey": "order:42", "myext": "mine",
				} {
					got := e.Extensions()[name]
					if text, _ := json.Marshal(got); strings.Trim(string(text), `"`) != want {
						t.Errorf("%s: the SDK reads %v, want %q", name, got, want)
					}
				}
				if len(e.Extensions()) != 9 || e.Extensions()["postrider"] == nil { // shows that the ID is ours
					t.Errorf("the SDK reads the extensions %v", e.Extensions())
				}
			})
		}
	}
}

// TestWeReadSDK encodes with the SDK and decodes with our codec.
func TestWeReadSDK(t *testing.T) {
	for name, mode := range map[string]func(context.Context) context.Context{
		"binary": binding.WithForceBinary, "structured": binding.WithForceStructured,
	} {
		for _, c := range payloads {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				e := event.New()
				e.SetID("A-1")
				e.SetType("order.placed")
				e.SetSource("/shop")
				e.SetSubject("42")
				e.SetTime(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
				e.SetDataSchema("https://example.com/order.json")
				e.SetExtension("partitionkey", "customer-7")
				e.SetExtension("schemaversion", 3)
				e.SetExtension("myext", "mine")
				e.SetExtension("mynumber", 5)
				e.SetExtension("mybool", true)
				var data any = []byte(c.payload)
				if c.name == "JSON" {
					data = json.RawMessage(c.payload)
				}
				if err := e.SetData(c.contentType, data); err != nil {
					t.Fatal(err)
				}
				r := &http.Request{Header: make(http.Header)}
				if err := cehttp.WriteRequest(mode(context.Background()), (*binding.EventMessage)(&e), r); err != nil {
					t.Fatal(err)
				}
				m, err := coder(t, codec.CloudEvents).Decode(packet(t, r))
				if err != nil {
					t.Fatal(err)
				}
				if m.WireID != "A-1" || m.Type != "order.placed" || m.AggregateID != "42" || m.Key != "customer-7" || m.SchemaVersion != 3 ||
					m.SchemaID != "https://example.com/order.json" || m.ContentType != c.contentType || m.OccurredAt.Second() != 6 ||
					m.Headers["ce-source"] != "/shop" || m.Headers["ce-myext"] != "mine" || m.Headers["ce-mynumber"] != "5" || m.Headers["ce-mybool"] != "true" {
					t.Errorf("got %+v", m)
				}
				if got := string(m.Payload); got != c.payload && !equalJSON(got, c.payload) {
					t.Errorf("payload: got %q, want %q", got, c.payload)
				}
			})
		}
	}
}

// equalJSON compares as JSON, because the SDK compacts JSON in an envelope.
func equalJSON(a, b string) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && x.String() == y.String()
}

package codec_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

func order(t testing.TB) postrider.Message {
	t.Helper()
	id, err := postrider.ParseID("0199fd5e-7a0f-7000-8000-0123456789ab")
	if err != nil {
		t.Fatal(err)
	}
	return postrider.Message{
		ID: id, Type: "order.placed", AggregateType: "order", AggregateID: "42 é", Topic: "orders",
		TenantID: "acme", Payload: []byte(`{"total": 12.50}`), ContentType: "application/json",
		SchemaVersion: 3, SchemaID: "https://example.com/order.json", DedupKey: "order:42", CorrelationID: "c-1",
		CausationID: "c-0", OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC),
		Headers: map[string]string{"traceparent": "00-1", "ce-myext": "100 %", "ce-id": "not mine to set"},
	}
}

func show(p *codec.Packet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name=%s key=%s id=%s type=%s\n", p.Name, p.Key, p.ID, p.ContentType)
	for _, h := range p.Headers {
		fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
	}
	return b.String() + string(p.Body)
}

func TestGolden(t *testing.T) {
	const id = "0199fd5e-7a0f-7000-8000-0123456789ab"
	for _, c := range []struct {
		name    string
		format  codec.Format
		dialect string
		change  func(*postrider.Message)
		want    string
	}{
		{"binary over HTTP", codec.CloudEvents, "http", nil, `name=orders key=order/42 é id=` + id + ` type=application/json
ce-specversion: 1.0
ce-id: ` + id + `
ce-source: /orders
ce-type: order.placed
ce-subject: 42%20%C3%A9
ce-time: 2026-02-03T04:05:06.789Z
ce-dataschema: https://example.com/order.json
ce-aggregatetype: order
ce-tenantid: acme
ce-schemaversion: 3
ce-correlationid: c-1
ce-causationid: c-0
ce-dedupkey: order:42
ce-postrider: d54ce338
ce-myext: 100%20%25
traceparent: 00-1
{"total": 12.50}`},
		{"binary over NATS", codec.CloudEvents, "nats", small, `name=orders key=k id=` + id + ` type=application/json
ce-specversion: 1.0
ce-id: ` + id + `
ce-source: /orders
ce-type: order.placed
ce-datacontenttype: application/json
ce-partitionkey: k
ce-schemaid: registry 7
ce-postrider: d54ce338
1`},
		{"binary over Kafka", codec.CloudEvents, "kafka", small, `name=orders key=k id=` + id + ` type=application/json
ce_specversion: 1.0
ce_id: ` + id + `
ce_source: /orders
ce_type: order.placed
ce_partitionkey: k
ce_schemaid: registry 7
ce_postrider: d54ce338
1`},
		{"structured", codec.CloudEventsStructured, "http", nil, `name=orders key=order/42 é id=` + id +
			` type=application/cloudevents+json; charset=UTF-8
traceparent: 00-1
{"specversion":"1.0","id":"` + id + `","source":"/orders","type":"order.placed","subject":"42 é",` +
			`"time":"2026-02-03T04:05:06.789Z","dataschema":"https://example.com/order.json","datacontenttype":"application/json",` +
			`"aggregatetype":"order","tenantid":"acme","schemaversion":3,"correlationid":"c-1","causationid":"c-0",` +
			`"dedupkey":"order:42","postrider":"d54ce338","myext":"100 %","data":{"total": 12.50}}`},
		{"structured with blanks around the payload", codec.CloudEventsStructured, "http", func(m *postrider.Message) {
			small(m)
			m.Payload = []byte(" 1\n")
		}, `name=orders key=k id=` + id + ` type=application/cloudevents+json; charset=UTF-8
{"specversion":"1.0","id":"` + id + `","source":"/orders","type":"order.placed","datacontenttype":"application/json",` +
			`"partitionkey":"k","schemaid":"registry 7","postrider":"d54ce338","data_base64":"IDEK"}`},
		{"raw", codec.Raw, "http", nil, `name=orders key=order/42 é id=` + id + ` type=application/json
ce-id: not mine to set
ce-myext: 100 %
traceparent: 00-1
{"total": 12.50}`},
		{"raw without a place for the ID", codec.Raw, "kafka", small, `name=orders key=k id=` + id + ` type=application/json
message-id: ` + id + `
1`},
		{"debezium", codec.Debezium, "kafka", func(m *postrider.Message) { m.Topic, m.Headers = "", nil },
			`name=outbox.event.order key=42 é id=` + id + ` type=application/json
id: ` + id + `
eventType: order.placed
{"total": 12.50}`},
		{"debezium to a topic of its own", codec.Debezium, "kafka", small, `name=orders key=k id=` + id + ` type=application/json
id: ` + id + `
eventType: order.placed
1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := order(t)
			if c.change != nil {
				c.change(&m)
			}
			var p codec.Packet
			coder(t, c.format, dialects[c.dialect]).Encode(&m, &p)
			got := strings.ReplaceAll(show(&p), "registry%207", "registry 7")
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// small returns a minimal order with a key and a schema ID that is not a URI.
func small(m *postrider.Message) {
	*m = postrider.Message{ID: m.ID, Type: m.Type, Topic: m.Topic, Key: "k", Payload: []byte("1"), ContentType: m.ContentType,
		SchemaID: "registry 7"}
}

func TestDecodeOthers(t *testing.T) {
	binary := func(more ...codec.Header) []codec.Header {
		return slices.Concat([]codec.Header{{"ce-specversion", "1.0"}, {"ce-id", "A-1"}, {"ce-source", "/s"}, {"ce-type", "t"}}, more)
	}
	const event = `"specversion":"1.0","id":"A-1","source":"/s","type":"t"`
	const structured = "Application/CloudEvents+JSON; charset=utf-8"
	for _, c := range []struct {
		name  string
		p     codec.Packet
		check func(m postrider.Message) bool
	}{
		{"upper case", codec.Packet{Headers: []codec.Header{{"CE-Specversion", "1.0"}, {"Ce-Id", "A-1"}, {"CE-SOURCE", "/s"},
			{"cE-tYpE", "Keeps.Case"}}}, func(m postrider.Message) bool { return m.Type == "Keeps.Case" && m.WireID == "A-1" }},
		{"the first of two", codec.Packet{Headers: binary(codec.Header{Name: "CE-ID", Value: "B"}, codec.Header{Name: "x", Value: "1"},
			codec.Header{Name: "x", Value: "2"})}, func(m postrider.Message) bool { return m.WireID == "A-1" && m.Headers["x"] == "1" }},
		{"foreign extension", codec.Packet{Headers: binary(codec.Header{Name: "ce-myext", Value: "a%20b"})},
			func(m postrider.Message) bool {
				return m.Headers["ce-myext"] == "a b" && m.Headers["ce-source"] == "/s"
			}},
		{"quoted", codec.Packet{Headers: binary(codec.Header{Name: "ce-subject", Value: `"a \"b\" c"`})},
			func(m postrider.Message) bool { return m.AggregateID == `a "b" c` }},
		{"percent of others", codec.Packet{Headers: binary(codec.Header{Name: "ce-subject", Value: `100%, %zz, %e2%82%ac`})},
			func(m postrider.Message) bool { return m.AggregateID == `100%, %zz, €` }},
		{"content type as attribute", codec.Packet{Headers: binary(codec.Header{Name: "ce-datacontenttype", Value: "text/x"})},
			func(m postrider.Message) bool { return m.ContentType == "text/x" }},
		{"the broker's key", codec.Packet{Key: "k", Headers: binary(codec.Header{Name: "ce-subject", Value: "s"})},
			func(m postrider.Message) bool { return m.OrderKey() == "k" && m.AggregateID == "s" }},
		{"a key of one slash", codec.Packet{Key: "/"}, func(m postrider.Message) bool { return m.OrderKey() == "/" }},
		{"schema version that is no number", codec.Packet{Headers: binary(codec.Header{Name: "ce-schemaversion", Value: "v2"})},
			func(m postrider.Message) bool { return m.Headers["ce-schemaversion"] == "v2" && m.SchemaVersion == 1 }},
		{"small t and z", codec.Packet{Headers: binary(codec.Header{Name: "ce-time", Value: "2026-01-02t03:04:05z"})},
			func(m postrider.Message) bool { return m.OccurredAt.Hour() == 3 }},

		{"structured", codec.Packet{ContentType: structured, Body: []byte(`{` + event + `,"data":{ "a":1 },"n":5,"b":true,"subject":null}`)},
			func(m postrider.Message) bool {
				return string(m.Payload) == `{ "a":1 }` && m.ContentType == "application/json" && m.Headers["ce-n"] == "5" &&
					m.Headers["ce-b"] == "true" && m.AggregateID == ""
			}},
		{"structured text", codec.Packet{ContentType: structured, Body: []byte(`{` + event + `,"datacontenttype":"application/xml","data":"<much wow=\"xml\"/>"}`)},
			func(m postrider.Message) bool { return string(m.Payload) == `<much wow="xml"/>` }},
		{"structured JSON text stays JSON", codec.Packet{ContentType: structured, Body: []byte(`{` + event + `,"data":"just text"}`)},
			func(m postrider.Message) bool {
				return string(m.Payload) == `"just text"` && m.ContentType == "application/json"
			}},
		{"structured null", codec.Packet{ContentType: structured, Body: []byte(`{` + event + `,"data":null}`)},
			func(m postrider.Message) bool { return string(m.Payload) == `null` }},
		{"structured without data", codec.Packet{ContentType: structured, Body: []byte(`{` + event + `,"time":null,"schemaversion":null}`)},
			func(m postrider.Message) bool { return m.Payload == nil && m.ContentType == "" }},
		{"structured with repeated headers", codec.Packet{ContentType: structured, Body: []byte(`{` + event + `}`),
			Headers: []codec.Header{{"ce-id", "A-1"}, {"trace", "1"}, {"ce-more", "%41"}}},
			func(m postrider.Message) bool {
				return m.WireID == "A-1" && len(m.Headers) == 3 && m.Headers["trace"] == "1" && m.Headers["ce-more"] == "A"
			}},
		{"a batch is not opened", codec.Packet{ContentType: "application/cloudevents-batch+json", Body: []byte(`[]`)},
			func(m postrider.Message) bool { return string(m.Payload) == `[]` }},
		{"no CloudEvent", codec.Packet{Name: "n", ID: "x", Body: []byte("b"), Headers: []codec.Header{{"ce-id", "other"}}},
			func(m postrider.Message) bool {
				return m.Type == "n" && m.WireID == "x" && string(m.Payload) == "b" && m.Headers["ce-id"] == "other"
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := coder(t, codec.CloudEvents, dialects["http"]).Decode(&c.p)
			if err != nil || !c.check(m) {
				t.Errorf("got %+v, %v", m, err)
			}
		})
	}
}

// TestDecodeAMQP checks that both prefixes of the AMQP binding are accepted.
func TestDecodeAMQP(t *testing.T) {
	for _, prefix := range []string{"cloudEvents_", "cloudEvents:", "cloudevents:"} {
		p := codec.Packet{Headers: []codec.Header{
			{prefix + "specversion", "1.0"}, {prefix + "id", "1"}, {prefix + "source", "/"}, {prefix + "type", "t"},
		}}
		if m, err := coder(t, codec.CloudEvents, dialects["amqp"]).Decode(&p); err != nil || m.Type != "t" {
			t.Errorf("%s: got %+v, %v", prefix, m, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	ok := []codec.Header{{"ce-specversion", "1.0"}, {"ce-id", "1"}, {"ce-source", "/s"}, {"ce-type", "t"}}
	without := func(i int) codec.Packet { return codec.Packet{Headers: slices.Delete(slices.Clone(ok), i, i+1)} }
	with := func(name, value string) codec.Packet {
		return codec.Packet{Headers: append(slices.Clone(ok), codec.Header{Name: name, Value: value})}
	}
	body := func(s string) codec.Packet {
		return codec.Packet{ContentType: "application/cloudevents+json", Body: []byte(s)}
	}
	for want, p := range map[string]codec.Packet{
		"no id":                   without(1),
		"no source":               without(2),
		"no type":                 without(3),
		`specversion "0.3"`:       {Headers: []codec.Header{{"ce-specversion", "0.3"}, ok[1], ok[2], ok[3]}},
		`time "yesterday"`:        with("ce-time", "yesterday"),
		"UTF-8":                   with("ce-subject", "%C0%A0"),
		"not a JSON object":       body(`[]`),
		"no specversion":          body(`null`),
		"both data":               body(`{"data":1,"data_base64":"MQ=="}`),
		"data_base64 that is":     body(`{"data_base64":"%"}`),
		"neither text":            body(`{"id":{}}`),
		"structured CloudEvent i": body(``),
	} {
		if _, err := coder(t, codec.CloudEvents, dialects["http"]).Decode(&p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something with %q", err, want)
		}
	}
}

func TestNewCodecRefuses(t *testing.T) {
	if _, err := codec.NewCodec("xml", "", codec.Dialect{}); err == nil {
		t.Error("an unknown format was accepted")
	}
	for _, source := range []string{"two words", "%zz", "ä", "a\nb"} {
		if _, err := codec.NewCodec("", source, codec.Dialect{}); err == nil {
			t.Errorf("source %q was accepted", source)
		}
	}
}

// TestEncodeReusesMemory checks that repeated encoding does not allocate.
func TestEncodeReusesMemory(t *testing.T) {
	c, m := coder(t, codec.CloudEvents, dialects["kafka"]), order(t)
	m.Headers = nil
	var p codec.Packet
	c.Encode(&m, &p)
	if n := testing.AllocsPerRun(100, func() { c.Encode(&m, &p) }); n > 4 {
		t.Errorf("Encode allocates %v times, want at most 4: the key, the ID, the time and the version", n)
	}
	if &p.Body[0] != &m.Payload[0] {
		t.Error("the payload was copied")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("application/cloudevents+json", `{"specversion":"1.0","id":"1","source":"/","type":"t","data":[1]}`, "x", "y", byte(0))
	f.Add("text/plain", "body", "ce-specversion", "1.0", byte(1))
	f.Add("", "", "cloudEvents:id", `"%C3%A4"`, byte(3))
	f.Fuzz(func(t *testing.T, contentType, body, name, value string, which byte) {
		formats, names := codec.Formats(), []string{"http", "nats", "kafka", "amqp", "plain"}
		d := dialects[names[int(which)%len(names)]]
		c := coder(t, formats[int(which/8)%len(formats)], d)
		p := codec.Packet{Name: "n", Key: "k", ID: "i", ContentType: contentType, Body: []byte(body), Headers: []codec.Header{
			{Name: name, Value: value}, {Name: d.Prefix + "specversion", Value: "1.0"}, {Name: d.Prefix + "id", Value: "1"},
			{Name: d.Prefix + "source", Value: "/"}, {Name: d.Prefix + "type", Value: value},
		}}
		for range 2 { // with and without the attributes
			if m, err := c.Decode(&p); err == nil && m.Validate() == nil {
				var again codec.Packet
				c.Encode(&m, &again)
				if _, err := c.Decode(&again); err != nil {
					t.Fatalf("%+v\nwas decoded and encoded as %+v: %v", m, again, err)
				}
			}
			p.Headers = p.Headers[:1]
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, format := range codec.Formats() {
		b.Run(string(format), func(b *testing.B) {
			c, m := coder(b, format, dialects["kafka"]), order(b)
			m.Headers = map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
			var p codec.Packet
			b.ReportAllocs()
			for b.Loop() {
				c.Encode(&m, &p)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, format := range codec.Formats() {
		b.Run(string(format), func(b *testing.B) {
			c, m := coder(b, format, dialects["kafka"]), order(b)
			var p codec.Packet
			c.Encode(&m, &p)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Decode(&p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestDecodeFailureKeepsThePacket checks that an invalid CloudEvent still reaches a handler with
// all its content.
func TestDecodeFailureKeepsThePacket(t *testing.T) {
	p := codec.Packet{
		Name: "orders", Key: "k", ID: "x-1", ContentType: "text/plain", Body: []byte("body"),
		Headers: []codec.Header{{Name: "ce-specversion", Value: "9"}, {Name: "ce-type", Value: "t"}, {Name: "own", Value: "v"}},
	}
	m, err := coder(t, codec.CloudEvents, dialects["http"]).Decode(&p)
	if err == nil {
		t.Fatal("version 9 was accepted")
	}
	if m.Topic != "orders" || m.Type != "orders" || m.Key != "k" || m.WireID != "x-1" || string(m.Payload) != "body" ||
		m.ContentType != "text/plain" || m.SchemaVersion != 1 || len(m.Headers) != 3 || m.Headers["ce-type"] != "t" {
		t.Errorf("got %+v", m)
	}
}

// TestEnvelope checks that the body alone contains everything that a consumer needs.
func TestEnvelope(t *testing.T) {
	c := coder(t, codec.Envelope, codec.Dialect{})
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, map[string]int{"total": 7})
	m.OccurredAt = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	var p codec.Packet
	c.Encode(&m, &p)
	want := `{"messageId":"` + m.ID.String() + `","type":"order.placed","aggregateType":"order","aggregateId":"42",` +
		`"occurredAt":"2026-01-02T03:04:05.0000006Z","payload":{"total":7}}`
	if string(p.Body) != want || p.ContentType != "application/json" || p.Key != "order/42" {
		t.Errorf("got  %s, %s, %s\nwant %s", p.Body, p.ContentType, p.Key, want)
	}
	// The body of another sender is left unchanged.
	other, err := c.Decode(&codec.Packet{Name: "orders", ID: "7", ContentType: "application/json", Body: []byte(`{"type":"x"}`)})
	if err != nil || string(other.Payload) != `{"type":"x"}` || other.Type != "orders" {
		t.Errorf("%+v, %v", other, err)
	}
}

// Package codec says how a message looks to a broker and its consumers: which of its fields become the body, which
// become headers, and under which names. Publishers encode with a [Codec] and consumers decode with one, so that every
// broker speaks every [Format].
package codec

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/postrider/postrider"
)

// Packet is a message as a broker carries it.
type Packet struct {
	Name        string   // of the topic, subject, queue or stream
	Key         string   // whose order is kept; empty if there is none
	ID          string   // by which a broker or a consumer recognises a repetition
	Place       string   // where a consumer found it, such as partition and offset; empty if the broker does not tell
	ContentType string   // of Body; empty if nobody said
	Headers     []Header // in a fixed order
	Body        []byte
	Repetition  string // as in [postrider.Message]
}

// repeats stands between a packet's ID and its repetition.
const repeats = ";repetition="

// UniqueID is the ID for brokers that drop what they have seen before: a deliberate repetition has one of its own.
func (p *Packet) UniqueID() string {
	if p.Repetition == "" {
		return p.ID
	}
	return p.ID + repeats + p.Repetition
}

// SetUniqueID is the way back from [Packet.UniqueID].
func (p *Packet) SetUniqueID(id string) {
	p.ID = id
	if at := strings.LastIndex(id, repeats); at >= 0 {
		p.ID = id[:at]
	}
}

// Header is one header of a packet.
type Header struct{ Name, Value string }

// Header returns the value of the first header with the name, in upper or lower case, and whether there is one.
func (p *Packet) Header(name string) (string, bool) {
	for i := range p.Headers {
		if strings.EqualFold(p.Headers[i].Name, name) {
			return p.Headers[i].Value, true
		}
	}
	return "", false
}

// Size is the number of bytes of the packet's parts, without what a broker's protocol adds.
func (p *Packet) Size() int {
	size := len(p.Name) + len(p.Key) + len(p.ID) + len(p.ContentType) + len(p.Body)
	for i := range p.Headers {
		size += len(p.Headers[i].Name) + len(p.Headers[i].Value)
	}
	return size
}

// Format names a way to lay a message out.
type Format string

// No format carries what is between the producer and the relay: RoutingKey, Priority, DeliverAfter. A header of the
// message that has the name of one that the format needs is not sent.
const (
	// CloudEvents is CloudEvents 1.0 in binary mode: the payload is the body, the other fields are headers. It is the
	// default. A header that has the dialect's prefix for attributes is sent as an attribute.
	CloudEvents Format = "cloudevents"
	// CloudEventsStructured is CloudEvents 1.0 in structured mode: the body is one JSON object with everything in it but
	// the message's own headers. A payload that is JSON stands in it as it is, any other in base64; both come out byte for
	// byte.
	CloudEventsStructured Format = "cloudevents-structured"
	// Raw is the payload and the message's own headers, and nothing else but the ID and the key.
	Raw Format = "raw"
	// Debezium is what the outbox event router of Debezium sends: the payload as the body, the aggregate's ID as the key,
	// the headers "id" and "eventType", and by default the name "outbox.event." with the aggregate's type.
	Debezium Format = "debezium"
	// Envelope is [Raw] with a body for consumers that look at nothing else: a JSON object with messageId, type, aggregateType, aggregateId,
	// occurredAt and the payload, which stands in payload if it is JSON and otherwise in payloadBase64.
	Envelope Format = "envelope"
)

// Formats returns all formats, the default first.
func Formats() []Format { return []Format{CloudEvents, CloudEventsStructured, Raw, Debezium, Envelope} }

// Dialect is what a broker's protocol says about headers.
type Dialect struct {
	// Prefix stands before the names of CloudEvents attributes. Defaults to "ce-".
	Prefix string
	// Percent means that header values are limited to printable ASCII: attributes are percent-encoded.
	Percent bool
	// NoID means that the protocol has no place for an ID: formats without one send it as the header "message-id".
	NoID bool
	// NoContentType means that the protocol's binding of CloudEvents has no place for a content type: events in binary mode
	// also carry it as the attribute "datacontenttype".
	NoContentType bool
	// ByType means that names are subjects or addresses rather than logs, so that several of them keep one order: without a topic, a
	// message's name is its type. Otherwise it is the type of its aggregate, lest the types of one aggregate are spread over logs that
	// consumers read at different speeds.
	ByType bool
}

// Codec translates between messages and packets. Its zero value is not usable; see [NewCodec]. It is safe for
// concurrent use.
type Codec struct {
	format  Format
	source  string
	sum     sum    // of the source
	mark    string // proves IDs of the source; empty if they need no proof
	dialect Dialect
	names   [attributeCount]string // with the prefix
}

// NewCodec returns a codec. An empty format means [CloudEvents]. The source is the CloudEvents attribute of that name, a
// URI reference that says who speaks; empty means "postrider".
func NewCodec(format Format, source string, d Dialect) (*Codec, error) {
	if format == "" {
		format = CloudEvents
	}
	switch format {
	case CloudEvents, CloudEventsStructured, Raw, Debezium, Envelope:
	default:
		return nil, fmt.Errorf("wire: format is %q: want one of %q", format, Formats())
	}
	if source == "" {
		source = defaultSource
	}
	if d.Prefix == "" {
		d.Prefix = "ce-"
	}
	if _, err := url.Parse(source); err != nil || !isURICharacters(source) {
		return nil, fmt.Errorf("wire: source is %q: want a URI reference, such as /orders or https://example.com/orders", source)
	}
	c := &Codec{format: format, source: source, sum: sumOf(source), dialect: d}
	if source != defaultSource {
		c.mark = sumOf(source).String()
	}
	for i, name := range attributeNames {
		c.names[i] = d.Prefix + name
	}
	return c, nil
}

// Name returns the topic, subject, queue or stream that Encode gives m.
func (c *Codec) Name(m *postrider.Message) string {
	switch {
	case m.Topic != "":
		return m.Topic
	case c.format == Debezium && m.AggregateType != "":
		return debeziumTopic + m.AggregateType
	case !c.dialect.ByType && c.format != Raw && m.AggregateType != "": // in raw messages, nothing but the name tells the type
		return m.AggregateType
	default:
		return m.Type
	}
}

// Encode lays m out in p. What p held before is overwritten; its memory for headers is used again. The body may share
// memory with the payload.
func (c *Codec) Encode(m *postrider.Message, p *Packet) {
	*p = Packet{
		Name:        c.Name(m),
		Key:         m.OrderKey(),
		ID:          m.BrokerID(),
		ContentType: m.ContentType,
		Headers:     p.Headers[:0],
		Body:        m.Payload,
		Repetition:  m.Repetition,
	}
	switch c.format {
	case CloudEvents:
		c.encodeBinary(m, p)
	case CloudEventsStructured:
		c.encodeStructured(m, p)
	case Raw:
		c.encodeRaw(m, p)
	case Debezium:
		c.encodeDebezium(m, p)
	case Envelope:
		c.encodeEnvelope(m, p)
	}
}

// Decode is the way back. It recognises CloudEvents of both modes, whoever sent them, and reads everything else as the
// codec's own format or, if that is CloudEvents, as [Raw]. The message may share memory with p. An error means that the
// packet claims to be a CloudEvent and is none; the message is then the packet as it came, with all its headers.
//
// The message's WireID is the ID that it came with. Its ID is that by which consumers recognise it: the one that it was
// enqueued with if a relay of Postrider sent it, in whichever format; otherwise the [Identity] of source and ID, where the
// topic stands for a source that is not named; or one of the packet's Place if the sender gave no ID. Without a place the
// ID is zero.
func (c *Codec) Decode(p *Packet) (postrider.Message, error) {
	m := postrider.Message{
		Topic:         p.Name,
		Type:          p.Name,
		Key:           p.Key,
		Payload:       p.Body,
		ContentType:   p.ContentType,
		SchemaVersion: 1,
	}
	m.WireID = p.ID
	plain := m
	var from origin
	var err error
	if isStructured(p.ContentType) {
		from, err = c.decodeStructured(p, &m)
	} else if c.isBinary(p) {
		from, err = c.decodeBinary(p, &m)
	} else if c.format == Debezium {
		from = c.decodeDebezium(p, &m)
	} else if c.format == Envelope {
		from = c.decodeEnvelope(p, &m)
	} else {
		from = c.decodeRaw(p, &m)
	}
	if err != nil {
		identify(&plain, p, origin{})
		for _, h := range p.Headers {
			setHeader(&plain, h.Name, h.Value)
		}
		return plain, fmt.Errorf("wire: %w", err)
	}
	if aggregate := (postrider.Message{AggregateType: m.AggregateType, AggregateID: m.AggregateID}); m.Key == aggregate.OrderKey() {
		m.Key = "" // the aggregate's is the default
	}
	identify(&m, p, from)
	return m, nil
}

// setHeader keeps the first of several headers with one name, as [Packet.Header] does.
func setHeader(m *postrider.Message, name, value string) {
	if m.Headers == nil {
		m.Headers = make(map[string]string)
	}
	if _, ok := m.Headers[name]; !ok {
		m.Headers[name] = value
	}
}

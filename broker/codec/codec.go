// Package codec defines how a message is encoded for a broker and its consumers: which fields
// become the body, which become headers, and under which names. Publishers encode and consumers
// decode with a [Codec], so that every broker supports every [Format].
package codec

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/postrider/postrider"
)

// Packet is a message as a broker carries it, independent of the protocol.
type Packet struct {
	Name        string   // of the topic, subject, queue or stream
	Key         string   // the ordering key; empty if there is none
	ID          string   // lets a broker or a consumer recognise a duplicate
	Place       string   // where a consumer found it, such as partition and offset; empty if the broker does not report it
	ContentType string   // of Body; empty if unknown
	Headers     []Header // in a fixed order
	Body        []byte
	Repetition  string // as in [postrider.Message]
}

// repeats separates a packet's ID from its repetition.
const repeats = ";repetition="

// UniqueID returns the ID for brokers that drop duplicates. A deliberate repetition has an ID of
// its own.
func (p *Packet) UniqueID() string {
	if p.Repetition == "" {
		return p.ID
	}
	return p.ID + repeats + p.Repetition
}

// SetUniqueID is the inverse of [Packet.UniqueID].
func (p *Packet) SetUniqueID(id string) {
	p.ID = id
	if at := strings.LastIndex(id, repeats); at >= 0 {
		p.ID = id[:at]
	}
}

// Header is one header of a packet.
type Header struct{ Name, Value string }

// Header returns the value of the first header with the name, ignoring case, and whether there is
// one.
func (p *Packet) Header(name string) (string, bool) {
	for i := range p.Headers {
		if strings.EqualFold(p.Headers[i].Name, name) {
			return p.Headers[i].Value, true
		}
	}
	return "", false
}

// Size returns the size of the packet's parts in bytes, without protocol overhead.
func (p *Packet) Size() int {
	size := len(p.Name) + len(p.Key) + len(p.ID) + len(p.ContentType) + len(p.Body)
	for i := range p.Headers {
		size += len(p.Headers[i].Name) + len(p.Headers[i].Value)
	}
	return size
}

// Format names a message format.
type Format string

// No format carries RoutingKey, Priority and DeliverAfter, which are addressed to the relay. A
// message's own header is not sent if the format itself uses that name.
const (
	// CloudEvents is CloudEvents 1.0 in binary mode: the payload is the body, the other fields are
	// headers. It is the default. A header with the dialect's attribute prefix is sent as an
	// attribute.
	CloudEvents Format = "cloudevents"
	// CloudEventsStructured is CloudEvents 1.0 in structured mode: the body is one JSON object with
	// everything except the message's own headers. A JSON payload is embedded as it is, any other
	// in base64; both are restored byte for byte.
	CloudEventsStructured Format = "cloudevents-structured"
	// Raw is the payload and the message's own headers, plus only the ID and the key.
	Raw Format = "raw"
	// Debezium is the format of Debezium's outbox event router: the payload as the body, the
	// aggregate's ID as the key, the headers "id" and "eventType", and by default the name
	// "outbox.event." followed by the aggregate's type.
	Debezium Format = "debezium"
	// Envelope is [Raw] for consumers that read only the body: a JSON object with messageId, type,
	// aggregateType, aggregateId, occurredAt and the payload, which is in payload if it is JSON and
	// otherwise in payloadBase64.
	Envelope Format = "envelope"
)

// Formats returns all formats, the default first.
func Formats() []Format { return []Format{CloudEvents, CloudEventsStructured, Raw, Debezium, Envelope} }

// Dialect describes how a broker's protocol treats headers and names.
type Dialect struct {
	// Prefix precedes the names of CloudEvents attributes. Defaults to "ce-".
	Prefix string
	// Percent means that header values are limited to printable ASCII. Attributes are then
	// percent-encoded.
	Percent bool
	// NoID means that the protocol has no field for an ID. Formats without one then send it as the
	// header "message-id".
	NoID bool
	// NoContentType means that the protocol's CloudEvents binding has no field for a content type.
	// Events in binary mode then also carry it as the attribute "datacontenttype".
	NoContentType bool
	// ByType means that names are subjects or addresses rather than logs, so that order is kept
	// across names. A message without a topic is then named after its type. Otherwise it is named
	// after its aggregate's type: one name per message type would spread an aggregate over logs
	// that consumers read at different speeds.
	ByType bool
}

// Codec translates between messages and packets. Create one with [NewCodec]; the zero value is not
// usable. It is safe for concurrent use.
type Codec struct {
	format  Format
	source  string
	sum     sum    // of the source
	mark    string // proof for IDs of the source; empty if they need none
	dialect Dialect
	names   [attributeCount]string // with the prefix
}

// NewCodec returns a codec. An empty format means [CloudEvents]. The source is the CloudEvents
// attribute of that name, a URI reference that identifies the sender; empty means "postrider".
func NewCodec(format Format, source string, d Dialect) (*Codec, error) {
	if format == "" {
		format = CloudEvents
	}
	switch format {
	case CloudEvents, CloudEventsStructured, Raw, Debezium, Envelope:
	default:
		return nil, fmt.Errorf("codec: format is %q: want one of %q", format, Formats())
	}
	if source == "" {
		source = defaultSource
	}
	if d.Prefix == "" {
		d.Prefix = "ce-"
	}
	if _, err := url.Parse(source); err != nil || !isURICharacters(source) {
		return nil, fmt.Errorf("codec: source is %q: want a URI reference, such as /orders or https://example.com/orders", source)
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

// Name returns the topic, subject, queue or stream to which Encode addresses m.
func (c *Codec) Name(m *postrider.Message) string {
	switch {
	case m.Topic != "":
		return m.Topic
	case c.format == Debezium && m.AggregateType != "":
		return debeziumTopic + m.AggregateType
	case !c.dialect.ByType && c.format != Raw && m.AggregateType != "": // in raw messages, only the name carries the type
		return m.AggregateType
	default:
		return m.Type
	}
}

// Encode encodes m into p. It overwrites p but reuses the memory of its headers. The body may share
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

// Decode decodes a packet into a message. It recognises CloudEvents of both modes from any sender,
// and reads everything else as the codec's own format or, if that is CloudEvents, as [Raw]. The
// message may share memory with p. An error means that the packet claims to be a CloudEvent but is
// invalid; the message is then the undecoded packet with all its headers.
//
// The message's WireID is the ID in the packet. Its ID is the one by which consumers recognise it:
//   - the ID that it was enqueued with, if a Postrider relay sent it, in any format;
//   - otherwise the [Identity] of source and ID, where the topic replaces a missing source;
//   - or one derived from the packet's Place, if the sender gave no ID; zero without a place.
func (c *Codec) Decode(p *Packet) (postrider.Message, error) {
	m, _, err := c.decode(p)
	return m, err
}

// Sent returns the ID of a packet, as in [postrider.Message.BrokerID], and whether a publisher with
// this codec may have sent it. An event of another source is another message, even if its ID is the
// same.
func (c *Codec) Sent(p *Packet) (id string, ok bool) {
	m, from, err := c.decode(p)
	return m.BrokerID(), err == nil && (from.source == "" || from.source == c.source)
}

func (c *Codec) decode(p *Packet) (postrider.Message, origin, error) {
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
		return plain, from, fmt.Errorf("codec: %w", err)
	}
	if aggregate := (postrider.Message{AggregateType: m.AggregateType, AggregateID: m.AggregateID}); m.Key == aggregate.OrderKey() {
		m.Key = "" // this is the default for the aggregate
	}
	identify(&m, p, from)
	return m, from, nil
}

// setHeader keeps the first of several headers with the same name, as [Packet.Header] does.
func setHeader(m *postrider.Message, name, value string) {
	if m.Headers == nil {
		m.Headers = make(map[string]string)
	}
	if _, ok := m.Headers[name]; !ok {
		m.Headers[name] = value
	}
}

package watermill

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// Names of metadata in addition to the headers.
const (
	// MetadataKey holds the ordering key, for marshalers that partition by key.
	MetadataKey = "key"
	// MetadataContentType holds the content type of the payload.
	MetadataContentType = "content-type"
	// HeaderUUID is the header in which Watermill's marshalers carry the UUID. It must not be in
	// the metadata, where some of them refuse it.
	HeaderUUID = "_watermill_message_uuid"

	escape = "h:" // prefix of headers that would clash with others
)

// Codec translates between messages of Postrider and of Watermill. It is safe for concurrent use.
type Codec struct {
	coder *codec.Codec
	topic func(m *postrider.Message) string
}

// NewCodec returns a codec for Topic, Format, Source and Prefix of the configuration.
func NewCodec(cfg Config) (*Codec, error) {
	coder, err := codec.NewCodec(cfg.Format, cfg.Source, codec.Dialect{Prefix: cfg.Prefix})
	if err != nil {
		return nil, err
	}
	return &Codec{coder: coder, topic: cfg.Topic}, nil
}

// Encode encodes m. The UUID is the one passed to a [Publisher], or else the broker's ID of m. The
// metadata are the format's headers, those of m, the key and the content type. The result shares no
// memory with m.
func (c *Codec) Encode(m *postrider.Message) (topic string, out *message.Message) {
	var p codec.Packet
	c.coder.Encode(m, &p)
	out = message.NewMessage(p.ID, bytes.Clone(p.Body))
	for _, h := range p.Headers {
		switch {
		case h.Name == HeaderUUID:
			out.UUID = h.Value
			continue
		case h.Name == MetadataKey, h.Name == MetadataContentType, strings.HasPrefix(h.Name, escape):
			h.Name = escape + h.Name
		}
		out.Metadata[h.Name] = h.Value
	}
	if p.Key != "" {
		out.Metadata[MetadataKey] = p.Key
	}
	if p.ContentType != "" {
		out.Metadata[MetadataContentType] = p.ContentType
	}
	return c.name(m), out
}

// name returns the topic of m.
func (c *Codec) name(m *postrider.Message) string {
	if c.topic != nil {
		return c.topic(m)
	}
	return c.coder.Name(m)
}

// Decode is the inverse of Encode, for Watermill handlers that need the enqueued message, for
// example for an inbox. An error means that the message claims to be a CloudEvent but is invalid;
// it is then returned undecoded.
func (c *Codec) Decode(topic string, in *message.Message) (postrider.Message, error) {
	p := codec.Packet{
		Name:        topic,
		Key:         in.Metadata[MetadataKey],
		ID:          in.UUID,
		ContentType: in.Metadata[MetadataContentType],
		Body:        in.Payload,
	}
	for _, name := range slices.Sorted(maps.Keys(in.Metadata)) {
		if name != MetadataKey && name != MetadataContentType {
			p.Headers = append(p.Headers, codec.Header{Name: strings.TrimPrefix(name, escape), Value: in.Metadata[name]})
		}
	}
	return c.coder.Decode(&p)
}

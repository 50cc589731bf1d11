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

// Names of metadata beside the headers.
const (
	// MetadataKey holds the ordering key, for marshalers that partition by one.
	MetadataKey = "key"
	// MetadataContentType holds the content type of the payload.
	MetadataContentType = "content-type"
	// HeaderUUID is the header in which Watermill's marshalers carry the UUID. In the metadata it has no place: some of
	// them refuse it there.
	HeaderUUID = "_watermill_message_uuid"

	escape = "h:" // before a header that would be taken for something else
)

// Codec translates between messages of Postrider and of Watermill. It is safe for concurrent use.
type Codec struct {
	coder *codec.Codec
	topic func(m *postrider.Message) string
}

// NewCodec returns the codec for Topic, Format, Source and Prefix of the configuration.
func NewCodec(cfg Config) (*Codec, error) {
	coder, err := codec.NewCodec(cfg.Format, cfg.Source, codec.Dialect{Prefix: cfg.Prefix})
	if err != nil {
		return nil, err
	}
	return &Codec{coder: coder, topic: cfg.Topic}, nil
}

// Encode lays m out. The UUID is the one that a [Publisher] was given, or else the broker's ID of m; the metadata are the
// format's headers, those of m, the key and the content type. Nothing shares memory with m.
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

// name returns the topic that m goes to.
func (c *Codec) name(m *postrider.Message) string {
	if c.topic != nil {
		return c.topic(m)
	}
	return c.coder.Name(m)
}

// Decode is the way back, for a Watermill handler that wants the message that was enqueued, for instance for an inbox. An
// error means that the message claims to be a CloudEvent and is none; it is then returned as it came.
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

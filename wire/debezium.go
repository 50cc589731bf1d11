package wire

import (
	"strings"

	"github.com/postrider/postrider"
)

// The names that the outbox event router of Debezium uses, with its usual placement of the type in a header.
const (
	debeziumTopic = "outbox.event."
	debeziumID    = "id"
	debeziumType  = "eventType"
)

func (c *Codec) encodeDebezium(m *postrider.Message, p *Packet) {
	if m.Topic == "" {
		p.Name = debeziumTopic + m.AggregateType
	}
	if m.Key == "" {
		p.Key = m.AggregateID
	}
	p.Headers = append(p.Headers, Header{debeziumID, p.ID}, Header{debeziumType, m.Type})
	appendOwn(m, p, func(name string) bool { return name == debeziumID || name == debeziumType })
}

func (c *Codec) decodeDebezium(p *Packet, m *postrider.Message) {
	if kind, ok := strings.CutPrefix(p.Name, debeziumTopic); ok {
		m.AggregateType, m.AggregateID, m.Key = kind, p.Key, ""
	}
	for _, h := range p.Headers {
		switch h.Name {
		case debeziumID:
			setID(m, h.Value)
		case debeziumType:
			m.Type = h.Value
		default:
			setHeader(m, h)
		}
	}
}

package codec

import (
	"strings"

	"github.com/postrider/postrider"
)

// Header and topic names of Debezium's outbox event router, with the type placed in a header as
// usual: table.fields.additional.placement=type:header:eventType.
const (
	debeziumTopic = "outbox.event."
	debeziumID    = "id"
	debeziumType  = "eventType"
)

func (c *Codec) encodeDebezium(m *postrider.Message, p *Packet) {
	if m.Key == "" && m.AggregateID != "" {
		p.Key = m.AggregateID
	}
	p.Headers = append(p.Headers, Header{debeziumID, p.ID}, Header{debeziumType, m.Type})
	appendProof(m, p)
	appendOwn(m, p, func(name, value string) (string, bool) {
		return value, !strings.EqualFold(name, debeziumID) && !strings.EqualFold(name, debeziumType) && !strings.EqualFold(name, nativeProof)
	})
}

func (c *Codec) decodeDebezium(p *Packet, m *postrider.Message) (from origin) {
	if kind, ok := strings.CutPrefix(p.Name, debeziumTopic); ok {
		m.AggregateType, m.AggregateID, m.Key = kind, p.Key, ""
	}
	for _, h := range p.Headers {
		switch { // ignore case: some protocols change it
		case strings.EqualFold(h.Name, debeziumID):
			m.WireID = h.Value
		case strings.EqualFold(h.Name, debeziumType):
			m.Type = h.Value
		case strings.EqualFold(h.Name, nativeProof):
			from.proof = h.Value
		default:
			setHeader(m, h.Name, h.Value)
		}
	}
	return from
}

package codec

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/postrider/postrider"
)

// envelope is the body of a message in the format [Envelope]. Its fields are in the order in which
// they are written.
type envelope struct {
	MessageID     string          `json:"messageId"`
	Type          string          `json:"type"`
	AggregateType string          `json:"aggregateType"`
	AggregateID   string          `json:"aggregateId"`
	OccurredAt    string          `json:"occurredAt"`
	ContentType   *string         `json:"contentType"` // unless it is application/json
	Payload       json.RawMessage `json:"payload"`
	Base64        []byte          `json:"payloadBase64"`
}

const jsonType = "application/json"

func (c *Codec) encodeEnvelope(m *postrider.Message, p *Packet) {
	body := make([]byte, 0, len(m.Payload)*4/3+256)
	member := func(name, value string) {
		body = append(body, `,"`+name+`":`...)
		body = appendJSON(body, value)
	}
	body = append(body, `{"messageId":`...)
	body = appendJSON(body, p.ID)
	member("type", m.Type)
	if m.AggregateType != "" {
		member("aggregateType", m.AggregateType)
	}
	if m.AggregateID != "" {
		member("aggregateId", m.AggregateID)
	}
	if at := m.OccurredAt.UTC(); !at.IsZero() && at.Year() <= 9999 {
		member("occurredAt", at.Format(time.RFC3339Nano))
	}
	if m.ContentType != jsonType {
		member("contentType", m.ContentType)
	}
	switch {
	case len(m.Payload) == 0:
	case isJSON(m.ContentType) && survivesInJSON(m.Payload):
		body = append(body, `,"payload":`...)
		body = append(body, m.Payload...)
	default:
		body = append(body, `,"payloadBase64":"`...)
		body = base64.StdEncoding.AppendEncode(body, m.Payload)
		body = append(body, '"')
	}
	p.Body, p.ContentType = append(body, '}'), jsonType
	c.encodeRaw(m, p)
}

// decodeEnvelope reads a body that has a messageId. Any other body comes from another sender and is
// left as it is.
func (c *Codec) decodeEnvelope(p *Packet, m *postrider.Message) (from origin) {
	from = c.decodeRaw(p, m)
	var e envelope
	if mediaType(p.ContentType) != jsonType || json.Unmarshal(p.Body, &e) != nil || e.MessageID == "" {
		return from
	}
	m.WireID, m.Type, m.AggregateType, m.AggregateID = e.MessageID, e.Type, e.AggregateType, e.AggregateID
	m.ContentType, m.Payload = jsonType, e.Payload
	if e.ContentType != nil {
		m.ContentType = *e.ContentType
	}
	if e.Payload == nil {
		m.Payload = e.Base64
	}
	m.OccurredAt, _ = time.Parse(time.RFC3339, e.OccurredAt) // missing or invalid: the time is unknown
	return from
}

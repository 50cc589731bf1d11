package wire

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

const structuredType = "application/cloudevents+json"

func isStructured(contentType string) bool {
	return len(contentType) >= len(structuredType) && strings.EqualFold(contentType[:len(structuredType)], structuredType)
}

// isJSON reports whether a payload of this content type may stand in a JSON document as it is.
func isJSON(contentType string) bool {
	if contentType == "" {
		return false
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}

func (c *Codec) encodeStructured(m *postrider.Message, p *Packet) {
	body := make([]byte, 0, len(m.Payload)*4/3+512)
	separator := byte('{')
	add := func(name, value string) {
		if value == "" {
			return
		}
		body = append(body, separator, '"')
		body = append(body, name...)
		body = append(body, '"', ':')
		body = appendJSON(body, value)
		separator = ','
	}
	add(attrSpecVersion, specVersion)
	add(attrID, p.ID)
	add(attrSource, c.source)
	add(attrType, m.Type)
	add(attrSubject, m.AggregateID)
	if !m.OccurredAt.IsZero() {
		add(attrTime, m.OccurredAt.UTC().Format(time.RFC3339Nano))
	}
	add(attrDataSchema, m.SchemaID)
	add("datacontenttype", m.ContentType)
	add(attrAggregate, m.AggregateType)
	add(attrPartitionKey, m.Key)
	add(attrTenant, m.TenantID)
	if m.SchemaVersion > 1 {
		body = append(body, `,"`+attrSchemaVersion+`":`...)
		body = strconv.AppendInt(body, int64(m.SchemaVersion), 10)
	}
	add(attrCorrelation, m.CorrelationID)
	add(attrCausation, m.CausationID)
	add(attrDedupKey, m.DedupKey)
	switch {
	case len(m.Payload) == 0:
	case isJSON(m.ContentType) && json.Valid(m.Payload):
		body = append(body, `,"data":`...)
		body = append(body, m.Payload...)
	default:
		body = append(body, `,"data_base64":"`...)
		body = base64.StdEncoding.AppendEncode(body, m.Payload)
		body = append(body, '"')
	}
	p.Body = append(body, '}')
	p.ContentType = structuredType + "; charset=UTF-8"
	appendOwn(m, p, func(string) bool { return false })
}

func appendJSON(b []byte, s string) []byte {
	encoded, err := json.Marshal(s)
	if err != nil { // a string can always be encoded
		panic(err)
	}
	return append(b, encoded...)
}

func (c *Codec) decodeStructured(p *Packet, m *postrider.Message) error {
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(p.Body, &attributes); err != nil {
		return fmt.Errorf("structured CloudEvent is not a JSON object: %w", err)
	}
	var required requiredAttributes
	m.Key, m.Payload, m.ContentType = "", nil, "application/json"
	for name, raw := range attributes {
		switch name {
		case "data":
			m.Payload = raw
		case "data_base64":
			if err := json.Unmarshal(raw, &m.Payload); err != nil {
				return fmt.Errorf("structured CloudEvent has data_base64 that is none: %w", err)
			}
		default:
			value, err := attributeText(raw)
			if err != nil {
				return fmt.Errorf("structured CloudEvent has %s: %w", name, err)
			}
			required.see(name, value)
			if name == "datacontenttype" {
				m.ContentType = value
			} else if ok, err := setAttribute(m, name, value); err != nil {
				return err
			} else if !ok {
				setHeader(m, Header{c.dialect.Prefix + name, value})
			}
		}
	}
	for _, h := range p.Headers {
		setHeader(m, h)
	}
	if m.Key == "" && m.AggregateType == "" {
		m.Key = p.Key
	}
	return required.missing()
}

// attributeText returns the canonical text of an attribute: those of CloudEvents are strings, numbers or booleans.
func attributeText(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		if raw[0] == '{' || raw[0] == '[' {
			return "", errors.New("a value that is neither text, number nor boolean")
		}
		if string(raw) == "null" {
			return "", nil
		}
		return string(raw), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

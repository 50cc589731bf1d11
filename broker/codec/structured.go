package codec

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postrider/postrider"
)

const (
	structuredType = "application/cloudevents+json"
	memberData     = "data"
	memberBase64   = "data_base64"

	// maxNesting is the maximum nesting depth of a payload that is embedded as it is. Some parsers
	// limit depth to 512; the object must stay readable wherever the payload alone is.
	maxNesting = 256
)

func isStructured(contentType string) bool { return mediaType(contentType) == structuredType }

// isJSON implements the rule of the CloudEvents JSON format for content types whose data is JSON.
func isJSON(contentType string) bool {
	media := mediaType(contentType)
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func (c *Codec) encodeStructured(m *postrider.Message, p *Packet) {
	body := make([]byte, 0, len(m.Payload)*4/3+512)
	separator := byte('{')
	member := func(name string) {
		body = append(body, separator, '"')
		body = append(body, name...)
		body = append(body, '"', ':')
		separator = ','
	}
	var a attributes
	c.attributesOf(m, p, &a)
	for i, value := range a {
		switch {
		case value == "":
		case attribute(i) == attrSchemaVersion: // written as a number
			member(attributeNames[i])
			body = append(body, value...)
		default:
			member(attributeNames[i])
			body = appendJSON(body, value)
		}
	}
	var extensions []string
	appendOwn(m, p, func(name, value string) (string, bool) {
		extension, ok := c.attributeName(name)
		switch {
		case !ok:
			return value, true
		case !c.maySend(extension, value):
			return "", false
		case !isExtensionName(extension):
			return c.escape(value), true
		}
		if !slices.Contains(extensions, extension) { // names that differ only in case are one attribute
			extensions = append(extensions, extension)
			member(extension)
			body = appendJSON(body, value)
		}
		return "", false
	})
	switch {
	case len(m.Payload) == 0:
	case isJSON(m.ContentType) && survivesInJSON(m.Payload):
		member(memberData)
		body = append(body, m.Payload...)
	default:
		member(memberBase64)
		body = append(body, '"')
		body = base64.StdEncoding.AppendEncode(body, m.Payload)
		body = append(body, '"')
	}
	p.Body = append(body, '}')
	p.ContentType = structuredType + "; charset=UTF-8"
}

// survivesInJSON reports whether a payload that is embedded in an object can be extracted byte for
// byte.
func survivesInJSON(payload []byte) bool {
	if isBlank(payload[0]) || isBlank(payload[len(payload)-1]) {
		return false // a parser drops white space around a value
	}
	return utf8.Valid(payload) && json.Valid(payload) && nesting(payload) <= maxNesting
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// nesting returns the depth of arrays and objects in valid JSON.
func nesting(payload []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(payload); i++ {
		switch b := payload[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			depth++
			deepest = max(deepest, depth)
		case b == '}' || b == ']':
			depth--
		}
	}
	return deepest
}

func appendJSON(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f || s[i] == '"' || s[i] == '\\' {
			encoded, err := json.Marshal(s)
			if err != nil { // cannot happen: any string can be encoded
				panic(err)
			}
			return append(b, encoded...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func (c *Codec) decodeStructured(p *Packet, m *postrider.Message) (origin, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.Body, &members); err != nil {
		return origin{}, fmt.Errorf("structured CloudEvent is not a JSON object: %w", err)
	}
	data, hasData := members[memberData]
	encoded, hasEncoded := members[memberBase64]
	delete(members, memberData)
	delete(members, memberBase64)
	var a attributes
	for name, raw := range members {
		value, err := attributeText(raw)
		if err != nil {
			return origin{}, fmt.Errorf("structured CloudEvent has %s: %w", name, err)
		}
		if i, ok := known(name); ok {
			a[i] = value
		} else if value != "" {
			setHeader(m, c.dialect.Prefix+name, value)
		}
	}
	m.Payload, m.ContentType = nil, a[attrContentType]
	switch {
	case hasData && hasEncoded:
		return origin{}, errors.New("structured CloudEvent has both data and data_base64")
	case hasData && m.ContentType == "":
		m.Payload, m.ContentType = data, "application/json" // the default of the JSON format
	case hasData && !isJSON(m.ContentType) && data[0] == '"':
		text, err := attributeText(data)
		if err != nil {
			return origin{}, fmt.Errorf("structured CloudEvent has data: %w", err)
		}
		m.Payload = []byte(text)
	case hasData:
		m.Payload = data
	case hasEncoded:
		if err := json.Unmarshal(encoded, &m.Payload); err != nil {
			return origin{}, fmt.Errorf("structured CloudEvent has data_base64 that is not valid: %w", err)
		}
	}
	for _, h := range p.Headers {
		value := h.Value
		if name, ok := c.attributeName(h.Name); ok {
			if _, repeated := known(name); repeated {
				continue
			}
			var err error
			if value, err = c.unescape(value); err != nil {
				return origin{}, err
			}
		}
		setHeader(m, h.Name, value)
	}
	return c.apply(&a, p, m)
}

// attributeText returns the canonical text of an attribute: a string, a number or a boolean. Null
// means that it is not set.
func attributeText(raw json.RawMessage) (string, error) {
	switch raw[0] {
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case '{', '[':
		return "", errors.New("a value that is neither text, number nor boolean")
	case 'n':
		return "", nil
	}
	return string(raw), nil
}

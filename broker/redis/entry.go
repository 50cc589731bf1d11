package redis

import (
	"strings"

	"github.com/postrider/postrider/broker/codec"
)

// Names of fields in addition to the headers.
const (
	fieldKey         = "key"
	fieldContentType = "content-type"
	fieldData        = "data"
	escape           = "h:" // prefix of headers that would clash with other fields
)

// appendEntry appends the command that stores p, and modifies p. Fields are in a fixed order, which
// Redis compresses best.
func appendEntry(out []byte, p *codec.Packet) []byte {
	for i, h := range p.Headers {
		if h.Name == fieldKey || h.Name == fieldContentType || h.Name == fieldData || strings.HasPrefix(h.Name, escape) {
			p.Headers[i].Name = escape + h.Name
		}
	}
	if p.Key != "" {
		p.Headers = append(p.Headers, codec.Header{Name: fieldKey, Value: p.Key})
	}
	if p.ContentType != "" {
		p.Headers = append(p.Headers, codec.Header{Name: fieldContentType, Value: p.ContentType})
	}
	out = appendLength(out, '*', 2*len(p.Headers)+5)
	out = append(out, "$4\r\nXADD\r\n"...)
	out = appendText(out, p.Name)
	out = append(out, "$1\r\n*\r\n"...) // the server assigns the entry's ID
	for i := range p.Headers {
		out = appendText(appendText(out, p.Headers[i].Name), p.Headers[i].Value)
	}
	return appendText(appendText(out, fieldData), p.Body)
}

// packet reads an entry from any sender.
func packet(stream, id string, fields map[string]any) codec.Packet {
	p := codec.Packet{Name: stream, Place: id}
	for name, v := range fields {
		value, _ := v.(string)
		switch name {
		case fieldKey:
			p.Key = value
		case fieldContentType:
			p.ContentType = value
		case fieldData:
			p.Body = []byte(value)
		default:
			p.Headers = append(p.Headers, codec.Header{Name: strings.TrimPrefix(name, escape), Value: value})
		}
	}
	return p
}

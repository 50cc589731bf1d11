package wire

import (
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider"
)

const messageID = "message-id"

func (c *Codec) encodeRaw(m *postrider.Message, p *Packet) {
	reserved := ""
	if c.dialect.NoID {
		reserved = messageID
		p.Headers = append(p.Headers, Header{messageID, p.ID})
	}
	appendOwn(m, p, func(name string) bool { return strings.EqualFold(name, reserved) })
}

func (c *Codec) decodeRaw(p *Packet, m *postrider.Message) {
	for _, h := range p.Headers {
		if c.dialect.NoID && strings.EqualFold(h.Name, messageID) {
			setID(m, h.Value)
		} else {
			setHeader(m, h)
		}
	}
}

// appendOwn adds the message's own headers, in the order of their names, but for those whose names the format needs.
func appendOwn(m *postrider.Message, p *Packet, reserved func(name string) bool) {
	switch len(m.Headers) {
	case 0:
	case 1:
		for name, value := range m.Headers {
			if !reserved(name) {
				p.Headers = append(p.Headers, Header{name, value})
			}
		}
	default:
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			if !reserved(name) {
				p.Headers = append(p.Headers, Header{name, m.Headers[name]})
			}
		}
	}
}

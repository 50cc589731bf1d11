package codec

import (
	"maps"
	"slices"
	"strings"

	"github.com/postrider/postrider"
)

const messageID = "message-id"

func (c *Codec) encodeRaw(m *postrider.Message, p *Packet) {
	if c.dialect.NoID {
		p.Headers = append(p.Headers, Header{messageID, p.ID})
	}
	appendProof(m, p)
	appendOwn(m, p, func(name, value string) (string, bool) {
		return value, !strings.EqualFold(name, nativeProof) && (!c.dialect.NoID || !strings.EqualFold(name, messageID))
	})
}

// native is the checksum of the empty source.
var native = sumOf("")

// appendProof adds the proof that a message needs if its route has changed its ID.
func appendProof(m *postrider.Message, p *Packet) {
	if text := proofOf(m, native, ""); text != "" {
		p.Headers = append(p.Headers, Header{nativeProof, text})
	}
}

func (c *Codec) decodeRaw(p *Packet, m *postrider.Message) (from origin) {
	for _, h := range p.Headers {
		switch {
		case c.dialect.NoID && strings.EqualFold(h.Name, messageID):
			m.WireID = h.Value
		case strings.EqualFold(h.Name, nativeProof):
			from.proof = h.Value
		default:
			setHeader(m, h.Name, h.Value)
		}
	}
	return from
}

// appendOwn appends the message's own headers, sorted by name. The function write returns how a
// value is written, and false if the header must not be sent because the format uses its name.
func appendOwn(m *postrider.Message, p *Packet, write func(name, value string) (string, bool)) {
	if len(m.Headers) == 1 { // needs no sorting
		for name, value := range m.Headers {
			if value, ok := write(name, value); ok {
				p.Headers = append(p.Headers, Header{name, value})
			}
		}
		return
	}
	if len(m.Headers) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if value, ok := write(name, m.Headers[name]); ok {
			p.Headers = append(p.Headers, Header{name, value})
		}
	}
}

package inbox

import (
	"crypto/sha256"

	"github.com/postrider/postrider"
)

// Identity returns the ID by which a message is recognised when it comes again: its own or, where a sender has none that is a
// UUID, one that is made from what the broker calls it.
func Identity(m *postrider.Message) (id postrider.ID, err error) {
	if !m.ID.IsZero() {
		return m.ID, nil
	}
	if m.WireID == "" {
		return named("content", m.Topic, m.OrderKey(), m.Type, string(m.Payload)),
			permanent("the message has no ID, so that a repetition could not be recognised")
	}
	return named("wire", m.WireID), nil
}

// named makes a version 8 UUID of some text.
func named(parts ...string) (id postrider.ID) {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

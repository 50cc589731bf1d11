package codec

import (
	"crypto/sha256"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
)

// defaultSource is the source if none is configured. IDs of this source need no proof.
const defaultSource = "postrider"

// nativeProof is the header for the proof in formats other than CloudEvents.
const nativeProof = "postrider-id"

// Identity returns the ID by which consumers recognise a message to which its sender gave the ID
// id. As CloudEvents defines it, two messages are the same if both source and id are equal as a
// whole.
//
// An ID that is a UUID is used unchanged if the source is unknown or "postrider". Any other is
// hashed with the source into a UUID. The result is of version 7 if the ID is, with the same time,
// so that inserting it into an inbox stays as cheap; otherwise it is of version 8. The SQL function
// postrider.message_identity computes the same.
func Identity(source, id string) postrider.ID {
	own, err := postrider.ParseID(id)
	if err == nil && (source == "" || source == defaultSource) {
		return own
	}
	// The length keeps ("a", "bc") and ("ab", "c") apart.
	sum := sha256.Sum256([]byte(strconv.Itoa(len(source)) + ":" + source + id))
	var derived postrider.ID
	copy(derived[:], sum[:])
	version := byte(8)
	if err == nil && !own.Time().IsZero() {
		copy(derived[:6], own[:6]) // the time
		version = 7
	}
	derived[6] = derived[6]&0x0f | version<<4
	derived[8] = derived[8]&0x3f | 0x80
	return derived
}

// origin is what a packet states about its sender.
type origin struct{ source, proof string }

// identify sets the message's ID. A packet with neither an ID nor a place keeps the zero ID.
func identify(m *postrider.Message, p *Packet, from origin) {
	switch own, ok := proven(from, m.WireID); {
	case ok:
		m.ID = own
	case from.source != "": // only events have one, and they always have an ID
		m.ID = Identity(from.source, m.WireID)
	case m.WireID != "":
		// Without a source, an ID is unique only within its topic.
		if m.ID, _ = postrider.ParseID(m.WireID); m.ID.IsZero() {
			m.ID = Identity(p.Name, m.WireID)
		}
	case p.Place != "":
		m.ID = Identity(p.Name, placed+p.Place)
	}
}

// placed precedes a place, so that a place cannot be mistaken for an ID.
const placed = "@"

// A relay adds a proof to a message whose source or ID would make it look like another sender's, so
// that consumers recover the ID that the message was enqueued with. For an ID that is the UUID
// itself, the proof is a checksum of the source. If a route has changed the ID, the proof is the
// position of the original ID in the new one, or the original ID, followed by a checksum of source
// and ID. A copy of the attributes in an event with another source or ID carries a proof that no
// longer verifies.

// textLength is the length of an ID as text.
const textLength = 36

// sum is a checksum of texts. It does not allocate, because it may be computed for each message.
type sum uint32

func (s sum) add(text string) sum {
	for i := range len(text) {
		s = sum(crc32.IEEETable[byte(s)^text[i]]) ^ s>>8
	}
	return s
}

func (s sum) String() string { return strconv.FormatUint(uint64(^s), 16) }

// sumOf returns the checksum of a source.
func sumOf(source string) sum { return (^sum(0)).add(strconv.Itoa(len(source))).add(":").add(source) }

// proofOf returns the proof that m needs; empty if its ID needs none. The mark is the proof of IDs
// that are sent unchanged.
func proofOf(m *postrider.Message, source sum, mark string) string {
	if m.ID.IsZero() {
		return ""
	}
	if m.WireID == "" {
		return mark
	}
	var proof [textLength + 1 + 8]byte
	b := proof[:0]
	at := len(m.WireID) - textLength // most routes put it at the end
	if own, err := postrider.ParseID(m.WireID[max(at, 0):]); err != nil || own != m.ID {
		b = append(b, m.ID.String()...)
	} else if at == 0 {
		return mark
	} else {
		b = strconv.AppendInt(b, int64(at), 10)
	}
	return string(strconv.AppendUint(append(b, ':'), uint64(^source.add(m.WireID)), 16))
}

// proven returns the ID that a proof vouches for, and whether the proof is valid.
func proven(from origin, id string) (postrider.ID, bool) {
	text, check, own := strings.Cut(from.proof, ":")
	if !own {
		text, check = id, from.proof
	} else if at, err := strconv.ParseUint(text, 10, 16); err == nil && int(at)+textLength <= len(id) {
		text = id[at:][:textLength]
	}
	if parsed, err := postrider.ParseID(text); err == nil {
		want := sumOf(from.source)
		if own {
			want = want.add(id)
		}
		return parsed, check != "" && check == want.String()
	}
	return postrider.ID{}, false
}

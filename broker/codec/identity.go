package codec

import (
	"crypto/sha256"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/postrider/postrider"
)

// defaultSource is the source of relays that were not given one. Their IDs need no proof.
const defaultSource = "postrider"

// nativeProof is the header for the proof in formats that are no CloudEvents.
const nativeProof = "postrider-id"

// Identity returns the ID by which consumers recognise a message that its sender calls id. As CloudEvents defines it, two
// messages are the same if source and id are: the whole ID, never a part of it.
//
// An ID that is a UUID stands for itself if no source is known, or the source is "postrider". Any other becomes a UUID of
// source and id. That has the time of a version 7 ID, so that an inbox treats it as cheaply, and is of version 8 otherwise.
// The SQL function postrider.message_identity computes the same.
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

// origin is what a packet says about who sent it.
type origin struct{ source, proof string }

// identify sets the message's ID. What carries neither an ID nor a place keeps a zero one.
func identify(m *postrider.Message, p *Packet, from origin) {
	switch own, ok := proven(from, m.WireID); {
	case ok:
		m.ID = own
	case m.WireID != "" && from.source != "":
		m.ID = Identity(from.source, m.WireID)
	case m.WireID != "":
		// Senders that name no source number their messages as they like: the ID means something within the topic only.
		if m.ID, _ = postrider.ParseID(m.WireID); m.ID.IsZero() {
			m.ID = Identity(p.Name, m.WireID)
		}
	case p.Place != "":
		m.ID = Identity(p.Name, placed+p.Place)
	}
}

// placed stands before a place, so that it cannot be taken for an ID.
const placed = "@"

// A relay's message carries a proof where its source or its ID would make it look like another sender's: so that it keeps the
// ID that it was enqueued with. It is a checksum of the source, for IDs that are UUIDs as they stand. Where a route has made
// another ID, it is where the message's own stands in that, or the message's own, and a checksum of source and ID. Whoever copies the
// attributes of an event into one of another source or ID copies a proof that is none any more.

// textLength is that of an ID.
const textLength = 36

// sum is a checksum of texts. It allocates nothing: there may be one for each message.
type sum uint32

func (s sum) add(text string) sum {
	for i := range len(text) {
		s = sum(crc32.IEEETable[byte(s)^text[i]]) ^ s>>8
	}
	return s
}

func (s sum) String() string { return strconv.FormatUint(uint64(^s), 16) }

// sumOf is the checksum of a source.
func sumOf(source string) sum { return (^sum(0)).add(strconv.Itoa(len(source))).add(":").add(source) }

// proofOf returns the proof that m needs; empty if its ID speaks for itself. The mark is the proof of IDs that stand as they are.
func proofOf(m *postrider.Message, source sum, mark string) string {
	if m.ID.IsZero() {
		return ""
	}
	if m.WireID == "" {
		return mark
	}
	var proof [textLength + 1 + 8]byte
	b := proof[:0]
	at := len(m.WireID) - textLength // where most routes have it
	if own, err := postrider.ParseID(m.WireID[max(at, 0):]); err != nil || own != m.ID {
		b = append(b, m.ID.String()...)
	} else if at == 0 {
		return mark
	} else {
		b = strconv.AppendInt(b, int64(at), 10)
	}
	return string(strconv.AppendUint(append(b, ':'), uint64(^source.add(m.WireID)), 16))
}

// proven returns the ID that a proof stands for.
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

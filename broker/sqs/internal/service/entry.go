package service

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/postrider/postrider/broker/codec"
)

// Attributes in addition to the message's headers. Headers with one of these names are stored in
// attributeHeaders.
const (
	attributeContentType = "content-type"
	attributeKey         = "postrider-key"     // the ordering key, in formats without another field for it
	attributeBody        = "postrider-body"    // how the body encodes the payload, if it is not the payload itself
	attributeHeaders     = "postrider-headers" // the headers that are not attributes, as a JSON object

	bodyBase64 = "base64"
	bodyEmpty  = "empty" // SQS does not accept an empty body
)

// Limits of Amazon's services.
const (
	LongestQueue = 80  // characters of a queue's name
	LongestTopic = 256 // characters of a topic's name
	MostEntries  = 10  // messages per request
	// MaxMessage is the maximum size of a message, body and attributes, that queues accept since
	// August 2025. A queue or topic may have a lower limit, MaximumMessageSize, which its own
	// answer reports.
	MaxMessage = 1 << 20

	longestID      = 128 // characters of a group ID or deduplication ID
	mostAttributes = 10  // per message. Topics accept more, but drop such a message on its way to a queue with raw delivery.
	stringType     = "String"
)

// Entry is a message as it is sent.
type Entry struct {
	Size int // bytes that count towards the limit

	body         string
	attributes   []codec.Header
	group, dedup string // FIFO queues and topics only
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.fifo)?$`)

// CheckName returns an error if a name is invalid or longer than longest characters.
func CheckName(name string, longest int) error {
	if !namePattern.MatchString(name) || len(name) > longest {
		return fmt.Errorf("%q is no name: want up to %d letters, digits, hyphens and underscores, with .fifo at the end or not", name, longest)
	}
	return nil
}

// IsFIFO reports whether a name is that of a FIFO queue or topic.
func IsFIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

// Pack encodes a packet. An error means that the message can never be sent.
func Pack(p *codec.Packet, format codec.Format) (Entry, error) {
	var e Entry
	var own []codec.Header
	if p.ContentType != "" {
		own = append(own, codec.Header{Name: attributeContentType, Value: p.ContentType})
	}
	if (format == codec.Raw || format == codec.Debezium) && p.Key != "" {
		own = append(own, codec.Header{Name: attributeKey, Value: p.Key})
	}
	switch {
	case len(p.Body) == 0:
		e.body, own = bodyEmpty, append(own, codec.Header{Name: attributeBody, Value: bodyEmpty})
	case utf8.Valid(p.Body) && isText(string(p.Body)):
		e.body = string(p.Body)
	default:
		e.body, own = base64.StdEncoding.EncodeToString(p.Body), append(own, codec.Header{Name: attributeBody, Value: bodyBase64})
	}
	for _, h := range own {
		if !isText(h.Value) {
			return e, fmt.Errorf("%s has a character that SQS does not accept: %q", h.Name, h.Value)
		}
	}
	plain, packed := divide(p.Headers, mostAttributes-len(own))
	e.attributes = append(own, plain...)
	if len(packed) > 0 {
		text, err := json.Marshal(packed)
		if err != nil {
			return e, err
		}
		// JSON escapes everything that SQS does not accept, except these two.
		value := strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`).Replace(string(text))
		e.attributes = append(e.attributes, codec.Header{Name: attributeHeaders, Value: value})
	}
	e.Size = len(e.body)
	for _, a := range e.attributes {
		e.Size += len(a.Name) + len(stringType) + len(a.Value)
	}
	if e.Size > MaxMessage {
		return e, fmt.Errorf("the message has %d bytes with its attributes, more than %d", e.Size, MaxMessage)
	}
	if IsFIFO(p.Name) {
		e.dedup = p.UniqueID()
		if !isIdentifier(e.dedup) {
			e.dedup = digest(e.dedup)
		}
		switch {
		case p.Key == "":
			e.group = digest(p.UniqueID()) // a group of its own: nothing waits for it
		case isIdentifier(p.Key) && !strings.HasPrefix(p.Key, digestPrefix):
			e.group = p.Key
		default:
			e.group = digest(p.Key)
		}
	}
	return e, nil
}

// divide returns the headers that are sent as attributes, as many as there is room for, and the
// others.
func divide(headers []codec.Header, room int) (plain []codec.Header, packed map[string]string) {
	misfits := 0
	for _, h := range headers {
		if !isAttribute(h) {
			misfits++
		}
	}
	if misfits > 0 || len(headers) > room {
		room-- // for the packed ones
		packed = make(map[string]string, len(headers))
	}
	for _, h := range headers {
		if isAttribute(h) && len(plain) < room {
			plain = append(plain, h)
		} else if _, ok := packed[h.Name]; !ok {
			packed[h.Name] = h.Value
		}
	}
	return plain, packed
}

var attributePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// isAttribute reports whether a header can be an attribute. An attribute must not be empty.
func isAttribute(h codec.Header) bool {
	lower := strings.ToLower(h.Name)
	return h.Value != "" && len(h.Name) <= 256 && isText(h.Value) && attributePattern.MatchString(h.Name) &&
		!strings.HasPrefix(lower, "aws.") && !strings.HasPrefix(lower, "amazon.") &&
		lower != attributeContentType && lower != attributeKey && lower != attributeBody && lower != attributeHeaders
}

// isText reports whether SQS accepts all characters: those of XML.
func isText(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

// isIdentifier reports whether s is a valid group ID and deduplication ID: letters, digits and
// punctuation of ASCII.
func isIdentifier(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= longestID
}

const digestPrefix = "postrider."

// digest replaces a text that is not a valid identifier. A collision, although practically
// impossible, would only make two keys of one group wait for each other.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return digestPrefix + hex.EncodeToString(sum[:])
}

// unpack is the inverse of Pack. An error means that the body or the headers do not match the
// attributes; the packet is then undecoded.
func unpack(name, id, group, body string, attributes map[string]string) (codec.Packet, error) {
	p := codec.Packet{Name: name, Place: id, Body: []byte(body)}
	if !strings.HasPrefix(group, digestPrefix) {
		p.Key = group
	}
	var errs []error
	for attribute, value := range attributes {
		switch attribute {
		case attributeContentType:
			p.ContentType = value
		case attributeKey:
			p.Key = value
		case attributeBody:
			var payload []byte
			var err error
			if value == bodyBase64 {
				payload, err = base64.StdEncoding.DecodeString(body)
			} else if value != bodyEmpty {
				err = fmt.Errorf("the attribute %s is %q", attributeBody, value)
			}
			if errs = append(errs, err); err == nil {
				p.Body = payload
			}
		case attributeHeaders:
			var packed map[string]string
			errs = append(errs, json.Unmarshal([]byte(value), &packed))
			for header, value := range packed {
				p.Headers = append(p.Headers, codec.Header{Name: header, Value: value})
			}
		default:
			p.Headers = append(p.Headers, codec.Header{Name: attribute, Value: value})
		}
	}
	return p, errors.Join(errs...)
}

// notification is the JSON in which a topic wraps a message for a queue without raw delivery.
type notification struct {
	Type, TopicArn, MessageId, Message string
	MessageAttributes                  map[string]struct{ Type, Value string }
}

// unwrap returns the body and attributes of the message in a notification. Other messages are
// returned unchanged: a notification has no attributes, and every message of Postrider has some.
func unwrap(body string, attributes map[string]string) (string, map[string]string) {
	var n notification
	if len(attributes) > 0 || !strings.HasPrefix(body, "{") || json.Unmarshal([]byte(body), &n) != nil ||
		n.Type != "Notification" || n.TopicArn == "" || n.MessageId == "" {
		return body, attributes
	}
	attributes = make(map[string]string, len(n.MessageAttributes))
	for name, a := range n.MessageAttributes {
		attributes[name] = a.Value
	}
	return n.Message, attributes
}

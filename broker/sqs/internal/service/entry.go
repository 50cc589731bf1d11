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

// Attributes beside the message's headers. A header with one of these names stands in attributeHeaders.
const (
	attributeContentType = "content-type"
	attributeKey         = "postrider-key"     // the ordering key, in formats that have no other place for it
	attributeBody        = "postrider-body"    // how the body stands for the payload, if it is not the payload
	attributeHeaders     = "postrider-headers" // the headers that are no attributes, as a JSON object

	bodyBase64 = "base64"
	bodyEmpty  = "empty" // SQS accepts no body without a character
)

// Limits of Amazon.
const (
	LongestQueue = 80  // characters of a queue's name
	LongestTopic = 256 // characters of a topic's name
	MostEntries  = 10  // messages of a request
	// MaxMessage is the most bytes of a message, of body and attributes, that queues accept since August 2025. A queue or topic may have
	// a lower limit, MaximumMessageSize, of which its own answer tells.
	MaxMessage = 1 << 20

	longestID      = 128 // characters of a group's ID, and of a deduplication ID
	mostAttributes = 10  // of a message. Topics take more, but drop such a message on its way to a queue with raw delivery.
	stringType     = "String"
)

// Entry is a message as it is sent.
type Entry struct {
	Size int // bytes that count

	body         string
	attributes   []codec.Header
	group, dedup string // in FIFO queues and topics
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.fifo)?$`)

// CheckName says what is wrong with a name of up to so many characters.
func CheckName(name string, longest int) error {
	if !namePattern.MatchString(name) || len(name) > longest {
		return fmt.Errorf("%q is no name: want up to %d letters, digits, hyphens and underscores, with .fifo at the end or not", name, longest)
	}
	return nil
}

// IsFIFO reports whether a name is that of a FIFO queue or topic.
func IsFIFO(name string) bool { return strings.HasSuffix(name, ".fifo") }

// Pack lays a packet out. An error says why the message can never be sent.
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
		// JSON escapes all that SQS does not accept but these two.
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

// divide returns the headers that can be attributes, the first of them, and the others.
func divide(headers []codec.Header, room int) (plain []codec.Header, packed map[string]string) {
	misfits := 0
	for _, h := range headers {
		if !isAttribute(h) {
			misfits++
		}
	}
	if misfits > 0 || len(headers) > room {
		room-- // for those that are packed
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

// isAttribute reports whether a header can be an attribute. An attribute cannot be empty.
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

// isIdentifier reports whether s can be the ID of a group, and a deduplication ID: letters, digits and punctuation of ASCII.
func isIdentifier(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= longestID
}

const digestPrefix = "postrider."

// digest stands for a text that cannot be an identifier. No two texts have the same, as far as anybody knows: two keys in one group
// would only wait for each other.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return digestPrefix + hex.EncodeToString(sum[:])
}

// unpack is the way back. An error means that the body or the headers are not what the attributes say; the packet is then as it came.
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

// notification is what a topic makes of a message for a queue without raw delivery.
type notification struct {
	Type, TopicArn, MessageId, Message string
	MessageAttributes                  map[string]struct{ Type, Value string }
}

// unwrap returns body and attributes of the message in a notification. Others are returned as they are: a notification has no attributes, and
// whatever Postrider sends has some.
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

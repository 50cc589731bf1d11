package nats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

const (
	headerContentType = "Content-Type"
	headerKey         = "message-key" // for formats without another field for it

	maxSubject = 1024 // the server closes the connection if a whole command exceeds 4096 bytes
)

// encoder encodes messages one at a time in reused memory.
type encoder struct {
	coder  *codec.Codec
	stream string // expected stream
	keyed  bool   // whether the key needs a header

	packet codec.Packet
	msg    client.Msg
	values []string
}

// encode returns a message that is valid until the next call, or a permanent error if NATS cannot
// carry it unchanged.
func (e *encoder) encode(m *postrider.Message) (*client.Msg, error) {
	p := &e.packet
	e.coder.Encode(m, p)
	e.msg = client.Msg{Subject: p.Name, Data: p.Body, Header: e.msg.Header}
	clear(e.msg.Header)
	e.values = e.values[:0]
	err := validSubject(p.Name)
	for i := 0; i < len(p.Headers) && err == nil; i++ {
		name, value := p.Headers[i].Name, p.Headers[i].Value
		switch {
		case isServers(name), strings.EqualFold(name, "Status"), e.keyed && name == headerKey:
			err = fmt.Errorf("header %q has a meaning of its own in NATS, or in this format", name)
		case !strings.EqualFold(name, headerContentType):
			err = e.set(name, value)
		case value != p.ContentType:
			err = fmt.Errorf("header %q is %q, but the message's ContentType is %q", name, value, p.ContentType)
		}
	}
	own := [...]codec.Header{{Name: client.MsgIdHdr, Value: p.UniqueID()}, {Name: headerContentType, Value: p.ContentType},
		{Name: client.ExpectedStreamHdr, Value: e.stream}, {Name: headerKey, Value: p.Key}}
	for i := range own {
		if own[i].Value != "" && err == nil && (own[i].Name != headerKey || e.keyed) {
			err = e.set(own[i].Name, own[i].Value)
		}
	}
	if err != nil {
		return nil, postrider.Permanent(fmt.Errorf("nats: %w", err))
	}
	return &e.msg, nil
}

// set refuses values that the client would silently change. The client validates names.
func (e *encoder) set(name, value string) error {
	if value != "" && (strings.ContainsAny(value, "\r\n") || strings.Trim(value, " \t") != value) {
		return fmt.Errorf("header %q has a line break, or a blank at an end, which NATS cannot carry", name)
	}
	e.values = append(e.values, value)
	n := len(e.values)
	e.msg.Header[name] = e.values[n-1 : n : n]
	return nil
}

// isServers reports whether the server interprets or adds the header.
func isServers(name string) bool { return len(name) >= 5 && strings.EqualFold(name[:5], "Nats-") }

// validSubject refuses wildcards, invalid subjects, and subjects reserved for the server.
func validSubject(s string) error {
	if s == "" || len(s) > maxSubject || s[0] == '$' || strings.ContainsAny(s, " \t\r\n\x00") {
		return fmt.Errorf("%.100q is no subject: it is empty, has blanks or over %d bytes, or begins with $", s, maxSubject)
	}
	for token := range strings.SplitSeq(s, ".") {
		if token == "" || token == "*" || token == ">" {
			return fmt.Errorf("the subject %q has a part %q", s, token)
		}
	}
	return nil
}

// decode decodes a delivery. If it claims to be a CloudEvent but is invalid, decode returns an
// error with the undecoded message.
func decode(coder *codec.Codec, place, subject string, header client.Header, data []byte) (postrider.Message, error) {
	p := codec.Packet{Name: subject, Place: place, Body: data}
	p.SetUniqueID(header.Get(client.MsgIdHdr))
	_, event := header["ce-specversion"]
	for name, values := range header {
		switch {
		case isServers(name):
		case strings.EqualFold(name, headerContentType):
			p.ContentType = values[0]
		case name == headerKey && !event:
			p.Key = values[0]
		default:
			p.Headers = append(p.Headers, codec.Header{Name: name, Value: values[0]})
		}
	}
	return coder.Decode(&p)
}

var errNoResponders = errors.New("nats: no stream listens on the subject")

// noListenerError is errNoResponders with the subject.
type noListenerError string

func (e noListenerError) Error() string { return "nats: no stream listens on the subject " + string(e) }

// readAnswer returns nil if the message is stored.
func readAnswer(m *client.Msg) error {
	// Recognise the usual answer, {"stream":"S","seq":N}, without decoding it.
	if bytes.HasPrefix(m.Data, []byte(`{"stream":"`)) && !bytes.Contains(m.Data, []byte(`"error"`)) {
		_, n, _ := bytes.Cut(m.Data, []byte(`"seq":`))
		if n = bytes.TrimLeft(n, " "); len(n) > 0 && n[0] >= '1' && n[0] <= '9' {
			return nil
		}
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return errNoResponders
	}
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err == nil && answer.Error != nil {
		return classify(answer.Error)
	}
	// Some servers before 2.11 remember the ID of a message that they then lose together with their
	// leader, and answer a retry with sequence 0.
	return errors.New("nats: the answer does not say that the message is stored")
}

// Error codes from the server's errors.json.
const (
	codeStoreFailed        = 10077
	codeDuplicateInProcess = 10158 // the first copy is neither stored nor lost yet
)

var (
	codesMessage = []jetstream.ErrorCode{10054, 10097} // too large, headers too large
	// These concern the whole server or account: account limits, no cluster, not the leader, no
	// resources, no memory, JetStream not enabled for the account, no storage, JetStream not
	// enabled.
	codesServer = []jetstream.ErrorCode{10002, 10008, 10009, 10023, 10028, 10039, 10047, 10076}
)

func classify(e *jetstream.APIError) error {
	storeFailed := e.ErrorCode == codeStoreFailed
	switch {
	case slices.Contains(codesMessage, e.ErrorCode), storeFailed && strings.Contains(e.Description, "too large"):
		return postrider.Permanent(e)
	case slices.Contains(codesServer, e.ErrorCode):
		return postrider.Unavailable(e)
	case storeFailed && !strings.Contains(e.Description, "maximum"), // "maximum" means that the stream is full and discards new messages
		e.ErrorCode == codeDuplicateInProcess, e.Code == 500:
		return e
	}
	return postrider.NameUnavailable(e) // the answer came from a stream
}

package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/postrider/postrider"
)

// On registers a handler for a type of message whose payload is JSON, decoded into a T. A payload that does not fit makes the
// message a dead letter at once.
func On[Tx, T any](in *Inbox[Tx], messageType string, handle func(ctx context.Context, tx Tx, value T) error, options ...Option) {
	var s schema
	for _, o := range options {
		o(&s)
	}
	in.Handle(messageType, func(ctx context.Context, tx Tx, m postrider.Message) error {
		var value T
		if err := s.decode(&m, &value); err != nil {
			return err
		}
		return handle(ctx, tx, value)
	})
}

// Option says how [On] reads payloads.
type Option func(*schema)

// Version is the version of the schema that T has. A message with a later one is a dead letter: deploy the program that knows it,
// then retry. Without this option, messages of all versions are read alike.
func Version(n int) Option { return func(s *schema) { s.version = n } }

// Upcast makes a payload of version from+1 of one of version from. Chained, they bring every older message to the [Version] that
// T has.
func Upcast(from int, convert func(payload []byte) ([]byte, error)) Option {
	return func(s *schema) {
		if s.upcasts == nil {
			s.upcasts = make(map[int]func([]byte) ([]byte, error))
		}
		s.upcasts[from] = convert
	}
}

// RefuseUnknownFields makes a message with a field that T does not have a dead letter. Without this option such fields are
// ignored, so that senders may add some.
func RefuseUnknownFields() Option { return func(s *schema) { s.closed = true } }

type schema struct {
	version int
	upcasts map[int]func([]byte) ([]byte, error)
	closed  bool
}

func (s *schema) decode(m *postrider.Message, into any) error {
	payload := m.Payload
	version := max(m.SchemaVersion, 1)
	if s.version != 0 {
		if version > s.version {
			return permanent("inbox: the payload has schema version %d, this program knows %d", version, s.version)
		}
		for ; version < s.version; version++ {
			convert := s.upcasts[version]
			if convert == nil {
				return permanent("inbox: the payload has schema version %d, and nothing leads from %d to %d", m.SchemaVersion, version, version+1)
			}
			var err error
			if payload, err = convert(payload); err != nil {
				return permanent("inbox: from schema version %d to %d: %w", version, version+1, err)
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	if s.closed {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return permanent("inbox: payload: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return permanent("inbox: payload: something follows the JSON value")
	}
	return nil
}

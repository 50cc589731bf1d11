package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/phrase"
)

// Codec decodes payloads of a content type.
type Codec interface {
	// Decode decodes the payload of a message into the value that into points to. An error makes
	// the message a dead letter, unless it is marked [postrider.Unavailable].
	Decode(ctx context.Context, m *postrider.Message, into any) error
}

// On registers a handler for a type of message and decodes the payload into a T: as JSON, or with
// the codec of its content type in [Config.Codecs]. A payload that cannot be decoded makes the
// message a dead letter at once.
func On[Tx, T any](in *Inbox[Tx], messageType string, handle func(ctx context.Context, tx Tx, value T) error, options ...Option) {
	read := reader[T](in.cfg.Codecs, options)
	in.Handle(messageType, func(ctx context.Context, tx Tx, m postrider.Message) error {
		value, err := read(ctx, m)
		if err != nil {
			return err
		}
		return handle(ctx, tx, value)
	}, options...)
}

// OnBatch is like [On] for a batch handler: see [Inbox.HandleBatch]. [Messages] returns the
// messages that the values were decoded from.
func OnBatch[Tx, T any](in *Inbox[Tx], messageType string, handle func(ctx context.Context, tx Tx, values []T) error, options ...Option) {
	read := reader[T](in.cfg.Codecs, options)
	in.HandleBatch(messageType, func(ctx context.Context, tx Tx, msgs []postrider.Message) error {
		values := make([]T, len(msgs))
		for i := range msgs {
			var err error
			if values[i], err = read(ctx, msgs[i]); err != nil {
				return err
			}
		}
		return handle(ctx, tx, values)
	}, options...)
}

// reader returns a function that decodes payloads.
func reader[T any](codecs map[string]Codec, options []Option) func(context.Context, postrider.Message) (T, error) {
	var s settings
	for _, o := range options {
		o(&s)
	}
	return func(ctx context.Context, m postrider.Message) (value T, err error) {
		if err := s.upcast(&m); err != nil {
			return value, err
		}
		codec := codecs[mediaType(m.ContentType)]
		if codec == nil {
			codec = jsonCodec{s.closed}
		}
		err = codec.Decode(ctx, &m, &value)
		if err != nil && postrider.ClassOf(err) != postrider.ClassUnavailable {
			err = permanent("inbox: payload of type %q: %w", m.ContentType, err)
		}
		return value, err
	}
}

// mediaType returns a content type in lower case, without its parameters.
func mediaType(contentType string) string {
	name, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(name))
}

// Version sets the schema version that T represents. A message with a later version becomes a dead
// letter: deploy the new version of the program, then retry it. Without this option, payloads of
// all versions are decoded alike.
func Version(n int) Option { return func(s *settings) { s.version = n } }

// Upcast converts a payload of version from to version from+1. Chained, upcasts bring every older
// payload to the [Version] of T.
func Upcast(from int, convert func(payload []byte) ([]byte, error)) Option {
	return func(s *settings) {
		if s.upcasts == nil {
			s.upcasts = make(map[int]func([]byte) ([]byte, error))
		}
		s.upcasts[from] = convert
	}
}

// RefuseUnknownFields makes a message with a field that T does not have a dead letter. Without this
// option such fields are ignored, so that senders can add fields.
func RefuseUnknownFields() Option { return func(s *settings) { s.closed = true } }

type schema struct {
	version int
	upcasts map[int]func([]byte) ([]byte, error)
	closed  bool
}

// upcast converts the payload to the schema version that the program knows.
func (s *schema) upcast(m *postrider.Message) error {
	if s.version == 0 {
		return nil
	}
	version := max(m.SchemaVersion, 1)
	if version > s.version {
		return permanent("inbox: the payload has schema version %d, this program knows %d", version, s.version)
	}
	for ; version < s.version; version++ {
		convert := s.upcasts[version]
		if convert == nil {
			return permanent("inbox: the payload has schema version %d, and nothing leads from %d to %d", m.SchemaVersion, version, version+1)
		}
		var err error
		if m.Payload, err = convert(m.Payload); err != nil {
			return permanent("inbox: from schema version %d to %d: %w", version, version+1, err)
		}
	}
	return nil
}

// jsonCodec decodes JSON, regardless of the content type.
type jsonCodec struct{ closed bool }

func (c jsonCodec) Decode(_ context.Context, m *postrider.Message, into any) error {
	d := json.NewDecoder(bytes.NewReader(m.Payload))
	if c.closed {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return phrase.Undecodable(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON value")
	}
	return nil
}

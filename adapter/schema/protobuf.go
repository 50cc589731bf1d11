package schema

import (
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/postrider/postrider"
)

// Protobuf encodes and decodes Protocol Buffers. The zero value works without a registry.
type Protobuf struct {
	// Registry is where Encode registers the .proto files of messages, including their imports. The
	// payload then starts with the schema ID. Decode needs no registry. Defaults to none.
	Registry *Registry
}

// Encode sets the payload and the content type of m and, with a registry, the schema ID. If it
// fails, m is unchanged.
//
// The first message of each type queries the registry, so encode before the transaction begins.
func (p Protobuf) Encode(ctx context.Context, m *postrider.Message, value proto.Message) error {
	if value == nil || !value.ProtoReflect().IsValid() {
		return fmt.Errorf("schema: cannot encode a nil %T", value)
	}
	header := []byte{}
	schemaID := m.SchemaID
	if p.Registry != nil {
		desc := value.ProtoReflect().Descriptor()
		id, err := p.Registry.protobufID(ctx, p.Registry.cfg.Subject(m, string(desc.FullName())), desc.ParentFile())
		if err != nil {
			return err
		}
		header = appendIndexes(appendHeader(nil, id), indexes(desc))
		schemaID = strconv.FormatUint(uint64(id), 10)
	}
	payload, err := proto.MarshalOptions{}.MarshalAppend(header, value)
	if err != nil {
		return fmt.Errorf("schema: encoding %T: %w", value, err)
	}
	m.Payload, m.ContentType, m.SchemaID = payload, ContentProtobuf, schemaID
	return nil
}

// Decode reads the payload into a Protobuf message, or into a pointer to one, which it allocates:
// handlers of [inbox.On] take a *orders.Placed. It reads payloads with and without a schema ID and
// never queries a registry: the reader's own type defines the fields, and preserves unknown ones.
//
// [inbox.On]: https://pkg.go.dev/github.com/postrider/postrider/inbox#On
func (p Protobuf) Decode(_ context.Context, m *postrider.Message, into any) error {
	target, err := protobufTarget(into)
	if err != nil {
		return err
	}
	payload := m.Payload
	if len(payload) > 0 && payload[0] == magic {
		if _, payload, err = cutHeader(payload); err != nil {
			return err
		}
		if payload, err = cutIndexes(payload); err != nil {
			return err
		}
	}
	return proto.Unmarshal(payload, target)
}

// protobufTarget returns the message that into is, or allocates the one that it points to.
func protobufTarget(into any) (proto.Message, error) {
	if target, ok := into.(proto.Message); ok {
		return target, nil
	}
	if v := reflect.ValueOf(into); v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Elem().Kind() == reflect.Pointer {
		allocated := reflect.New(v.Type().Elem().Elem())
		if target, ok := allocated.Interface().(proto.Message); ok {
			v.Elem().Set(allocated)
			return target, nil
		}
	}
	return nil, fmt.Errorf("cannot decode Protobuf into a %s: want a pointer to a generated message", strings.TrimPrefix(fmt.Sprintf("%T", into), "*"))
}

// indexes returns the position of a message type in its file.
func indexes(desc protoreflect.MessageDescriptor) []int {
	var path []int
	for d := protoreflect.Descriptor(desc); ; d = d.Parent() {
		if _, ok := d.(protoreflect.MessageDescriptor); !ok {
			slices.Reverse(path)
			return path
		}
		path = append(path, d.Index())
	}
}

func (r *Registry) protobufID(ctx context.Context, subject string, file protoreflect.FileDescriptor) (uint32, error) {
	return r.id(ctx, registered{subject, file}, func(ctx context.Context) (document, error) { return r.protobufDocument(ctx, file) })
}

// protobufDocument returns a file in the registry's form, with the descriptor in base64, after
// registering its imports. The subject of an imported file is its path, as with Confluent's
// clients.
func (r *Registry) protobufDocument(ctx context.Context, file protoreflect.FileDescriptor) (document, error) {
	descriptor, err := proto.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return document{}, err
	}
	d := document{Schema: base64.StdEncoding.EncodeToString(descriptor), Type: "PROTOBUF"}
	for i := range file.Imports().Len() {
		imported := file.Imports().Get(i)
		path := imported.Path()
		if strings.HasPrefix(path, "google/protobuf/") { // built into registries
			continue
		}
		if imported.IsPlaceholder() {
			return document{}, postrider.Permanent(fmt.Errorf("schema: %s imports %s, which is not linked into this program", file.Path(), path))
		}
		needed, err := r.protobufDocument(ctx, imported.FileDescriptor)
		if err != nil {
			return document{}, err
		}
		if _, err := r.register(ctx, path, needed); err != nil {
			return document{}, err
		}
		version, err := r.version(ctx, path, needed)
		if err != nil {
			return document{}, err
		}
		d.References = append(d.References, reference{Name: path, Subject: path, Version: version})
	}
	return d, nil
}

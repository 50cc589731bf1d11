package schema

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/twmb/avro"

	"github.com/postrider/postrider"
)

// AvroConfig lists the Go types of an [Avro] codec.
type AvroConfig struct {
	// Types are the types to encode and decode. Required.
	Types []AvroType
	// Registry holds the writers' schemas. Defaults to none: payloads then identify their schema by
	// its fingerprint, and Types must contain every schema that they may have been written with.
	Registry *Registry
}

// AvroType is a Go type and its Avro schema.
type AvroType struct {
	// Value is any value of the type, such as OrderPlaced{}. The tag avro:"name" names a field.
	Value any
	// Schema is the JSON schema that this program writes with and reads into. Fields that a
	// writer's schema lacks get their defaults, fields that Schema lacks are skipped, and aliases
	// match renamed fields.
	Schema string
	// Older are other schemas that messages may still be written with, if there is no registry.
	// Defaults to none.
	Older []string
}

// Avro encodes and decodes Avro. It is safe for concurrent use.
type Avro struct {
	registry *Registry
	types    map[reflect.Type]*avroType
	resolved *cache[avroKey, *avro.Schema]
}

type avroType struct {
	schema *avro.Schema
	text   string
	record string
	known  map[[8]byte]*avro.Schema // by fingerprint: resolves that schema into ours; only without a registry
}

// avroKey identifies how payloads of a schema are read into a type.
type avroKey struct {
	id   uint32
	into *avroType
}

// NewAvro returns a codec, or all mistakes in its configuration.
func NewAvro(cfg AvroConfig) (*Avro, error) {
	a := &Avro{registry: cfg.Registry, types: make(map[reflect.Type]*avroType, len(cfg.Types))}
	if cfg.Registry != nil {
		a.resolved = newCache[avroKey, *avro.Schema](cfg.Registry.cfg.Cache)
	}
	var errs []error
	if len(cfg.Types) == 0 {
		errs = append(errs, errors.New("schema: avro: Types is empty: name the Go types and their schemas"))
	}
	for i, t := range cfg.Types {
		complain := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("schema: avro: Types[%d] (%T): "+format, append([]any{i, t.Value}, args...)...))
		}
		goType := reflect.TypeOf(t.Value)
		if goType == nil {
			complain("Value is nil: want a value such as OrderPlaced{}")
			continue
		}
		goType = pointedTo(goType)
		if a.types[goType] != nil {
			complain("is listed twice")
		}
		if cfg.Registry != nil && len(t.Older) > 0 {
			complain("Older is set and Registry too: the registry has the older schemas")
		}
		schema, err := avro.Parse(t.Schema)
		if err != nil {
			complain("Schema: %w", err)
			continue
		}
		name := record(schema)
		if name == "" {
			complain("Schema: is no record: want one, which has a name")
			continue
		}
		known := &avroType{schema: schema, text: t.Schema, record: name, known: map[[8]byte]*avro.Schema{fingerprint(schema): schema}}
		for j, text := range t.Older {
			if err := known.add(text); err != nil {
				complain("Older[%d]: %w", j, err)
			}
		}
		a.types[goType] = known
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return a, nil
}

// add makes payloads of an older schema readable.
func (t *avroType) add(text string) error {
	writer, err := avro.Parse(text)
	if err != nil {
		return err
	}
	resolved, err := avro.Resolve(writer, t.schema)
	if err != nil {
		return err
	}
	t.known[fingerprint(writer)] = resolved
	return nil
}

// Encode sets the payload and the content type of m and, with a registry, the schema ID. The type
// of value must be one of the configured types, or a pointer to one. If Encode fails, m is
// unchanged.
//
// The first message of each type queries the registry, so encode before the transaction begins.
func (a *Avro) Encode(ctx context.Context, m *postrider.Message, value any) error {
	t, err := a.typeOf(value)
	if err != nil {
		return fmt.Errorf("schema: cannot encode: %w", err)
	}
	var payload []byte
	schemaID := m.SchemaID
	if a.registry == nil {
		payload, err = t.schema.AppendSingleObject(nil, value)
	} else {
		var id uint32
		id, err = a.registry.id(ctx, registered{a.registry.cfg.Subject(m, t.record), t.text},
			func(context.Context) (document, error) { return document{Schema: t.text}, nil })
		if err != nil {
			return err
		}
		schemaID = strconv.FormatUint(uint64(id), 10)
		payload, err = t.schema.AppendEncode(appendHeader(nil, id), value)
	}
	if err != nil {
		return fmt.Errorf("schema: encoding %T: %w", value, err)
	}
	m.Payload, m.ContentType, m.SchemaID = payload, ContentAvro, schemaID
	return nil
}

// Decode reads the payload into a value of one of the configured types, or into a pointer to one,
// which it allocates. With a registry, the first payload of each schema fetches its writer's
// schema.
func (a *Avro) Decode(ctx context.Context, m *postrider.Message, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return fmt.Errorf("cannot decode Avro into a %T: want a pointer", into)
	}
	t, err := a.typeOf(into)
	if err != nil {
		return err
	}
	schema, payload, err := a.writer(ctx, m.Payload, t)
	if err != nil {
		return err
	}
	for target = target.Elem(); target.Kind() == reflect.Pointer; target = target.Elem() {
		target.Set(reflect.New(target.Type().Elem()))
	}
	rest, err := schema.Decode(payload, target.Addr().Interface())
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes follow the Avro value", len(rest))
	}
	return err
}

// writer returns the schema that reads the rest of a payload, after its header, into t.
func (a *Avro) writer(ctx context.Context, payload []byte, t *avroType) (*avro.Schema, []byte, error) {
	if a.registry == nil {
		mark, rest, err := avro.SingleObjectFingerprint(payload)
		if err != nil {
			return nil, nil, err
		}
		schema := t.known[mark]
		if schema == nil {
			return nil, nil, fmt.Errorf("the schema with fingerprint %x is not known: add it to Older of %s", mark, t.record)
		}
		return schema, rest, nil
	}
	id, rest, err := cutHeader(payload)
	if err != nil {
		return nil, nil, err
	}
	schema, err := a.resolved.get(ctx, avroKey{id, t}, func(ctx context.Context) (*avro.Schema, error) {
		writer, err := a.registry.avroSchema(ctx, id)
		if err != nil {
			return nil, err
		}
		return avro.Resolve(writer, t.schema)
	})
	return schema, rest, err
}

// avroSchema returns the schema with an ID, including its references.
func (r *Registry) avroSchema(ctx context.Context, id uint32) (*avro.Schema, error) {
	d, err := r.byID(ctx, id)
	if err != nil {
		return nil, err
	}
	if d.Type != "" && d.Type != "AVRO" {
		return nil, postrider.Permanent(fmt.Errorf("schema: the schema with ID %d is %s, not AVRO", id, d.Type))
	}
	var names avro.SchemaCache
	if err := r.addReferences(ctx, &names, d.References, make(map[reference]bool)); err != nil {
		return nil, err
	}
	return names.Parse(d.Schema)
}

// addReferences parses referenced schemas, each after its own references. The set seen guards
// against cycles.
func (r *Registry) addReferences(ctx context.Context, names *avro.SchemaCache, refs []reference, seen map[reference]bool) error {
	const most = 100
	for _, ref := range refs {
		if seen[ref] {
			continue
		}
		if seen[ref] = true; len(seen) > most {
			return postrider.Permanent(fmt.Errorf("schema: a schema has more than %d references", most))
		}
		d, err := r.byReference(ctx, ref)
		if err != nil {
			return err
		}
		if err := r.addReferences(ctx, names, d.References, seen); err != nil {
			return err
		}
		if _, err := names.Parse(d.Schema); err != nil {
			return fmt.Errorf("schema %s, version %d: %w", ref.Subject, ref.Version, err)
		}
	}
	return nil
}

// typeOf returns the configured type of a value, dereferencing pointers.
func (a *Avro) typeOf(value any) (*avroType, error) {
	if goType := reflect.TypeOf(value); goType != nil {
		if t := a.types[pointedTo(goType)]; t != nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("there is no Avro schema for a %T: add it to Types", value)
}

func pointedTo(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// record returns the full name of a record schema, or "" for other schemas.
func record(schema *avro.Schema) string {
	root := schema.Root()
	switch {
	case root.Type != "record":
		return ""
	case root.Namespace == "" || strings.Contains(root.Name, "."):
		return root.Name
	}
	return root.Namespace + "." + root.Name
}

// fingerprint returns the identifier of a schema in single-object encoding.
func fingerprint(schema *avro.Schema) (mark [8]byte) {
	h := avro.NewRabin()
	_, _ = h.Write(schema.Canonical()) // a hash never fails
	binary.LittleEndian.PutUint64(mark[:], h.Sum64())
	return mark
}

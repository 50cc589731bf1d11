// Package schema encodes and decodes payloads as Protocol Buffers and as Avro, with or without a schema registry.
//
// A producer encodes a value into a message before it enqueues the message:
//
//	m := postrider.Event("order.placed", "order", "42", nil)
//	err := schema.Protobuf{}.Encode(ctx, &m, &orders.Placed{Id: "42"})
//
// An inbox decodes what has a codec for its content type:
//
//	inbox.New(store, "billing", inbox.Config{Codecs: map[string]inbox.Codec{schema.ContentProtobuf: schema.Protobuf{}}})
//
// # What a payload looks like
//
//	               without a registry            with a registry
//	Protobuf       the message alone             00, schema ID (4 bytes), message indexes, the message
//	Avro           single-object encoding        00, schema ID (4 bytes), the value
//
// With a registry it is the wire format of Confluent's serializers. Avro without a registry is what the Avro specification
// defines for messages: C3 01, the fingerprint of the writer's schema, the value. A bare Avro value does not say what it
// was written with. Read with another schema it may give wrong values and no error, so this package neither writes nor
// reads it.
//
// # Files
//
// frame.go is the wire format, cache.go what is kept of a registry, config.go and registry.go its client, protobuf.go and avro.go
// the codecs.
package schema

import (
	"github.com/postrider/postrider/inbox"
)

// Content types of the payloads that this package writes.
const (
	// ContentProtobuf is the registered media type of Protocol Buffers.
	ContentProtobuf = "application/protobuf"
	// ContentAvro is what most call Avro; no media type is registered.
	ContentAvro = "application/avro"
)

var (
	_ inbox.Codec = Protobuf{}
	_ inbox.Codec = (*Avro)(nil)
)

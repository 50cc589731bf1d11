// Package schema encodes and decodes payloads as Protocol Buffers or Avro, with or without a schema
// registry.
//
// A producer encodes a value into a message before it enqueues the message:
//
//	m := postrider.Event("order.placed", "order", "42", nil)
//	err := schema.Protobuf{}.Encode(ctx, &m, &orders.Placed{Id: "42"})
//
// An inbox decodes payloads whose content type has a codec:
//
//	inbox.New(store, "billing", inbox.Config{Codecs: map[string]inbox.Codec{schema.ContentProtobuf: schema.Protobuf{}}})
//
// # Payload formats
//
//	               without a registry            with a registry
//	Protobuf       the message alone             00, schema ID (4 bytes), message indexes, the message
//	Avro           single-object encoding        00, schema ID (4 bytes), the value
//
// With a registry, the format is that of Confluent's serializers. Avro without a registry uses the
// single-object encoding of the Avro specification: C3 01, the fingerprint of the writer's schema,
// the value. A bare Avro value does not identify its schema, and reading it with another schema can
// silently give wrong values, so this package neither writes nor reads it.
//
// # Files
//
// frame.go implements the payload header, cache.go the cache of registry answers, config.go and
// registry.go the registry client, protobuf.go and avro.go the codecs.
package schema

import (
	"github.com/postrider/postrider/inbox"
)

// Content types of the payloads that this package writes.
const (
	// ContentProtobuf is the registered media type of Protocol Buffers.
	ContentProtobuf = "application/protobuf"
	// ContentAvro is the usual content type for Avro; no media type is registered.
	ContentAvro = "application/avro"
)

var (
	_ inbox.Codec = Protobuf{}
	_ inbox.Codec = (*Avro)(nil)
)

// Package otel traces messages with OpenTelemetry, from the request that enqueued them to their
// effect at a consumer.
//
// Attach an [Observer] to an outbox, a publisher and a consumer with [postrider.ObserveOutbox],
// [broker.ObservePublisher] and [postrider.Observe]; an inbox takes it as the Observer of its
// configuration. The outbox stores the trace context in the headers of the message, so that it
// outlives the transaction, the relay and the broker. Payloads, header values and error texts are
// not recorded by default; see [Config].
//
// The package depends on the API of OpenTelemetry only. The program chooses the SDK and the
// exporter.
package otel

// Package otel traces messages with OpenTelemetry, from the request that enqueued them to the effect at a consumer.
//
// An [Observer] is put around an outbox, a publisher and a consumer by [postrider.ObserveOutbox],
// [broker.ObservePublisher] and [postrider.Observe]; an inbox takes it as the Observer of its configuration.
// The context travels in the headers of the message, where the outbox stores it, so that it outlives the transaction, the
// relay and the broker. Nothing of a payload, a header or an error's text is recorded.
//
// The package needs the API of OpenTelemetry alone. Which SDK records, and where it sends to, is the program's affair.
package otel

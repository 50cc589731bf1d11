// Package otel traces messages with OpenTelemetry, from the request that enqueued them to the effect at a consumer.
package otel

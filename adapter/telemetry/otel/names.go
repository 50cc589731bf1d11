package otel

import "go.opentelemetry.io/otel/attribute"

// This file holds every name that this package exports to telemetry. Names that begin with
// "messaging." and "error." follow the semantic conventions for messaging, whose status is
// Development: they may still change.

// scope is the instrumentation scope of spans and metrics.
const scope = "github.com/postrider/postrider/adapter/telemetry/otel"

const (
	attrSystem       = attribute.Key("messaging.system")
	attrOperation    = attribute.Key("messaging.operation.name")
	attrOperationOf  = attribute.Key("messaging.operation.type")
	attrDestination  = attribute.Key("messaging.destination.name")
	attrMessage      = attribute.Key("messaging.message.id")
	attrConversation = attribute.Key("messaging.message.conversation_id")
	attrSize         = attribute.Key("messaging.message.body.size")
	attrBatch        = attribute.Key("messaging.batch.message_count")
	attrGroup        = attribute.Key("messaging.consumer.group.name")
	attrErrorType    = attribute.Key("error.type")

	attrFeed     = attribute.Key("postrider.feed")
	attrType     = attribute.Key("postrider.message.type")
	attrKey      = attribute.Key("postrider.key")
	attrRepeated = attribute.Key("postrider.repeated")        // a duplicate of an earlier message: nothing was written
	attrFailed   = attribute.Key("postrider.failed_messages") // in a call
)

// The operations, which are the first word of span names.
const (
	opCreate  = "create"
	opSend    = "send"
	opProcess = "process"
)

// The metrics. Durations are in seconds.
const (
	metricOperation = "messaging.client.operation.duration"
	metricSent      = "messaging.client.sent.messages"
	metricProcess   = "messaging.process.duration"
	metricLatency   = "postrider.publish.latency"
)

// traceParent is the header of the W3C trace context.
const traceParent = "traceparent"

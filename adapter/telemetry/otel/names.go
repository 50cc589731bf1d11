package otel

import "go.opentelemetry.io/otel/attribute"

// Every name that leaves this package stands here. Those that begin with "messaging." and "error." are of the semantic
// conventions for messaging, which have the status Development: they can still change, and then this file does.

// scope is the name under which spans and metrics are recorded.
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
	attrRepeated = attribute.Key("postrider.repeated")        // the fact was stated before: nothing was written
	attrFailed   = attribute.Key("postrider.failed_messages") // of a call
)

// The operations, which begin the names of spans.
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

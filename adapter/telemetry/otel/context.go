package otel

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
)

// inject stores the trace context of ctx in the headers of m.
func (o *Observer) inject(ctx context.Context, m *postrider.Message) {
	o.cfg.Propagator.Inject(ctx, propagation.MapCarrier(m.Headers))
}

// extract returns ctx with the trace context in the headers of m, in place of any that ctx had.
func (o *Observer) extract(ctx context.Context, m *postrider.Message) context.Context {
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	return o.cfg.Propagator.Extract(ctx, propagation.MapCarrier(m.Headers))
}

// carries reports whether m already has a trace context.
func (o *Observer) carries(m *postrider.Message) bool {
	if o.w3c {
		return m.Headers[traceParent] != ""
	}
	return trace.SpanContextFromContext(o.extract(context.Background(), m)).IsValid()
}

// creation returns the context of m's creation if it is sampled, and an invalid one otherwise. Most
// messages are not sampled, so a single character decides before anything is parsed.
func (o *Observer) creation(m *postrider.Message) trace.SpanContext {
	if o.w3c && !sampled(m.Headers[traceParent]) {
		return trace.SpanContext{}
	}
	c := trace.SpanContextFromContext(o.extract(context.Background(), m))
	if !c.IsSampled() {
		return trace.SpanContext{}
	}
	return c
}

// sampled reads the flag of a traceparent: "00-", 32 digits, "-", 16 digits, "-", and two digits,
// whose lowest bit is the flag.
func sampled(parent string) bool {
	if len(parent) < 55 {
		return false
	}
	c := parent[54]
	if c > '9' {
		c -= 'a' - 10 // keeps the lowest bit of the digit's value
	}
	return c&1 == 1
}

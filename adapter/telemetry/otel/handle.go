package otel

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
)

// Handle starts a span "process <topic>" as a child of the message's creation, or with a link to it
// (see Config.Link). The handler's context carries the span, so that its work belongs to the trace.
func (o *Observer) Handle(ctx context.Context, consumer string, m *postrider.Message) (context.Context, func(error)) {
	start := time.Now()
	parent := o.extract(ctx, m)
	link := trace.SpanContextFromContext(parent)
	if link.IsValid() && !o.cfg.Link {
		link = trace.SpanContextFromContext(ctx) // for example the HTTP request that delivered a webhook
	} else {
		parent = trace.ContextWithSpan(parent, trace.SpanFromContext(ctx))
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(append(o.describe(opProcess, m), attrGroup.String(consumer))...),
	}
	if link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	own, span := o.tracer.Start(parent, opProcess+" "+cmp.Or(m.Topic, m.Type), options...)
	return own, func(err error) {
		if err != nil {
			o.fail(span, err, kind(err))
		}
		span.End()
		o.processed(own, consumer, start, err)
	}
}

// processed records the duration of handling a message.
func (o *Observer) processed(ctx context.Context, consumer string, start time.Time, err error) {
	if !o.meters.process.Enabled(ctx) {
		return
	}
	more := []attribute.KeyValue{attrGroup.String(consumer)}
	if err != nil {
		more = append(more, kind(err))
	}
	o.meters.process.Record(ctx, time.Since(start).Seconds(), o.measure(opProcess, more...))
}

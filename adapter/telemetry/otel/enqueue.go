package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
)

// few is the maximum number of messages of a call that get a span each.
const few = 16

// Enqueue starts a span "create <type>" for each message as a child of the span in ctx, and stores
// its context in the message. Many messages share one span. A message that already has a context
// keeps it and gets no span.
func (o *Observer) Enqueue(ctx context.Context, msgs []postrider.Message) (context.Context, func([]int, error)) {
	start := time.Now()
	spans := o.create(ctx, msgs)
	return ctx, func(repeats []int, err error) {
		if err == nil && len(spans) == len(msgs) {
			for _, i := range repeats {
				if spans[i] != nil {
					spans[i].SetAttributes(attrRepeated.Bool(true))
				}
			}
		}
		for _, span := range spans {
			if span == nil {
				continue
			}
			if err != nil {
				o.fail(span, err, kind(err))
			}
			span.End()
		}
		o.created(ctx, start, err)
	}
}

// create returns one span per message, nil where there is none, or a single span for all of them.
func (o *Observer) create(ctx context.Context, msgs []postrider.Message) []trace.Span {
	if len(msgs) > few {
		return o.createTogether(ctx, msgs)
	}
	spans := make([]trace.Span, len(msgs))
	for i := range msgs {
		m := &msgs[i]
		if o.carries(m) { //nolint:contextcheck // what ctx knows of traces is not in the message
			continue
		}
		own, span := o.tracer.Start(ctx, opCreate+" "+m.Type, trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(o.describe(opCreate, m)...))
		o.inject(own, m)
		spans[i] = span
	}
	return spans
}

func (o *Observer) createTogether(ctx context.Context, msgs []postrider.Message) []trace.Span {
	name := opCreate + " " + msgs[0].Type
	for i := range msgs {
		if msgs[i].Type != msgs[0].Type {
			name = opCreate
			break
		}
	}
	own, span := o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(append(o.operation(opCreate), attrBatch.Int(len(msgs)))...))
	for i := range msgs {
		if !o.carries(&msgs[i]) { //nolint:contextcheck // what ctx knows of traces is not in the message
			o.inject(own, &msgs[i])
		}
	}
	return []trace.Span{span}
}

// created records the duration of a call.
func (o *Observer) created(ctx context.Context, start time.Time, err error) {
	if !o.meters.operation.Enabled(ctx) {
		return
	}
	var more []attribute.KeyValue
	if err != nil {
		more = append(more, kind(err))
	}
	o.meters.operation.Record(ctx, time.Since(start).Seconds(), o.measure(opCreate, more...))
}

// describe returns the attributes of a span that describe its message.
func (o *Observer) describe(operation string, m *postrider.Message) []attribute.KeyValue {
	all := append(o.operation(operation), attrType.String(m.Type), attrSize.Int(len(m.Payload)))
	if id := messageID(m); id != "" {
		all = append(all, attrMessage.String(id))
	}
	if m.Topic != "" {
		all = append(all, attrDestination.String(m.Topic))
	}
	if m.CorrelationID != "" {
		all = append(all, attrConversation.String(m.CorrelationID))
	}
	if key := m.OrderKey(); o.cfg.Keys && key != "" {
		all = append(all, attrKey.String(key))
	}
	return all
}

// messageID returns the ID that all spans of a message share: the producer does not know the
// broker's ID yet. It is empty if the store has yet to assign the ID.
func messageID(m *postrider.Message) string {
	if m.ID.IsZero() {
		return m.WireID
	}
	return m.ID.String()
}

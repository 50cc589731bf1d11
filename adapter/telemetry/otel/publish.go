package otel

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
)

// maxLinks is the maximum number of links of a span, which is also the limit of SDKs.
const maxLinks = 128

// origin is a message of a call whose creation is sampled.
type origin struct {
	at      int // index in the call
	created trace.SpanContext
}

// Publish starts a span "send <feed>" for the call, with links to the creation of its messages.
// Once the outcome is known, each sampled message gets a span "send <topic>" in its own trace. It
// does not change headers: a consumer's span is a child of the creation.
func (o *Observer) Publish(ctx context.Context, feed string, msgs []postrider.Message) (context.Context, func([]error)) {
	start := time.Now()
	var origins []origin
	for i := range msgs {
		if c := o.creation(&msgs[i]); c.IsValid() {
			origins = append(origins, origin{i, c})
		}
	}
	links := make([]trace.Link, min(len(origins), maxLinks))
	for i := range links {
		links[i].SpanContext = origins[i].created
		links[i].Attributes = append(links[i].Attributes, attrMessage.String(messageID(&msgs[origins[i].at])))
	}
	own, call := o.tracer.Start(ctx, opSend+" "+feed, trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(links...),
		trace.WithTimestamp(start),
		trace.WithAttributes(append(o.operation(opSend), attrFeed.String(feed), attrBatch.Int(len(msgs)))...))
	return own, func(errs []error) {
		end := time.Now()
		o.sendEach(call.SpanContext(), feed, msgs, origins, errs, start, end)
		o.endCall(call, errs, end)
		o.sent(own, feed, msgs, errs, start, end)
	}
}

// sendEach adds the call to the trace of each sampled message. Of the messages that an outage
// stopped it shows only a few, so that repeated attempts do not flood the traces.
func (o *Observer) sendEach(call trace.SpanContext, feed string, msgs []postrider.Message, origins []origin, errs []error, start, end time.Time) {
	stopped := 0
	for _, from := range origins {
		m := &msgs[from.at]
		var err error
		if errs != nil {
			err = errs[from.at]
		}
		if err != nil && postrider.ClassOf(err) == postrider.ClassUnavailable {
			if stopped++; stopped > few || errors.Is(err, postrider.ErrNotTried) {
				continue
			}
		}
		options := []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(start),
			trace.WithAttributes(append(o.describe(opSend, m), attrFeed.String(feed))...),
		}
		if call.IsSampled() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: call}))
		}
		parent := trace.ContextWithRemoteSpanContext(context.Background(), from.created)
		_, span := o.tracer.Start(parent, opSend+" "+cmp.Or(m.Topic, m.Type), options...)
		if err != nil {
			o.fail(span, err, class(err))
		}
		span.End(trace.WithTimestamp(end))
	}
}

func (o *Observer) endCall(call trace.Span, errs []error, end time.Time) {
	failed := 0
	var first error
	for _, err := range errs {
		if err != nil {
			if failed++; first == nil {
				first = err
			}
		}
	}
	if first != nil {
		call.SetAttributes(attrFailed.Int(failed))
		o.fail(call, first, class(first))
	}
	call.End(trace.WithTimestamp(end))
}

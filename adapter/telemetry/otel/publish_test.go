package otel_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
)

func attributeKey(name string) attribute.Key { return attribute.Key(name) }

func TestPublish(t *testing.T) {
	s := newScene(t, otel.Config{System: "nats"}, sdktrace.AlwaysSample())
	msgs := s.created(3)
	before := maps.Clone(msgs[0].Headers)
	ctx, told := s.o.Publish(t.Context(), "default", msgs)
	told([]error{nil, postrider.Permanent(errors.New("too large")), nil})
	if !maps.Equal(before, msgs[0].Headers) {
		t.Errorf("headers have become %v", msgs[0].Headers)
	}
	call := s.one("send default")
	if trace.SpanContextFromContext(ctx).SpanID() != call.SpanContext().SpanID() {
		t.Error("the publisher's context does not carry the span of the call")
	}
	if call.SpanKind() != trace.SpanKindClient || call.Status().Code != codes.Error ||
		value(call.Attributes(), "postrider.failed_messages") != "1" || value(call.Attributes(), "messaging.batch.message_count") != "3" {
		t.Errorf("the call is a %s with status %v, %v", call.SpanKind(), call.Status(), call.Attributes())
	}
	sends := s.named("send orders")
	creates := s.named("create order.placed")
	if len(sends) != 3 || len(call.Links()) != 3 {
		t.Fatalf("%d spans and %d links for 3 messages", len(sends), len(call.Links()))
	}
	for i, send := range sends {
		want := []string{"", "permanent", ""}[i]
		if got := value(send.Attributes(), "error.type"); got != want {
			t.Errorf("message %d: error.type is %q, want %q", i, got, want)
		}
		if send.Parent().SpanID() != creates[i].SpanContext().SpanID() || call.Links()[i].SpanContext.SpanID() != creates[i].SpanContext().SpanID() {
			t.Errorf("message %d: its send span and the call's link do not lead to its creation", i)
		}
		if len(send.Links()) != 1 || send.Links()[0].SpanContext.SpanID() != call.SpanContext().SpanID() {
			t.Errorf("message %d: its send span has no link to the call", i)
		}
		if got := value(send.Attributes(), "messaging.message.id"); got != msgs[i].ID.String() {
			t.Errorf("message %d: message.id is %q", i, got)
		}
		if !send.StartTime().Equal(call.StartTime()) || !send.EndTime().Equal(call.EndTime()) {
			t.Errorf("message %d: its send span has other times than the call", i)
		}
	}
}

// During an outage the same messages are retried repeatedly; each attempt must record only a few of
// them.
func TestPublishOutage(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	msgs := s.created(200)
	errs := make([]error, len(msgs))
	for i := range errs {
		errs[i] = postrider.Unavailable(errors.New("connection refused"))
	}
	_, told := s.o.Publish(t.Context(), "default", msgs)
	told(errs)
	if n := len(s.named("send orders")); n != 16 {
		t.Errorf("%d messages have a span, want 16", n)
	}
	if n := len(s.one("send default").Links()); n != 128 {
		t.Errorf("the call has %d links, want 128", n)
	}
}

func TestPublishNotTried(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	_, told := s.o.Publish(t.Context(), "default", s.created(2))
	told([]error{errors.New("timeout"), postrider.Unavailable(postrider.ErrNotTried)})
	if got := value(s.one("send orders").Attributes(), "error.type"); got != "unknown" {
		t.Errorf("error.type is %q", got)
	}
}

// The shortcut for the flag agrees with the propagator, whatever the header contains.
func TestPublishFlags(t *testing.T) {
	const ids = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"
	headers := []string{"", "x", ids, ids + "1", "ff" + ids[2:] + "01", ids + "01-more", "00-" + fmt.Sprintf("%032d", 0) + ids[35:] + "01"}
	for flags := range 256 {
		headers = append(headers, fmt.Sprintf("%s%02x", ids, flags), fmt.Sprintf("01%s%02x", ids[2:], flags))
	}
	for _, header := range headers {
		s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
		m := event("1")
		m.Headers["traceparent"] = header
		want := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier(m.Headers))).IsSampled()
		_, told := s.o.Publish(t.Context(), "default", []postrider.Message{m})
		told(nil)
		if got := len(s.named("send orders")) == 1; got != want {
			t.Errorf("%q is recorded: %t, want %t", header, got, want)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	for _, sampled := range []string{"00", "01"} {
		b.Run("flags "+sampled, func(b *testing.B) {
			traces := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
			o, err := otel.New(otel.Config{TracerProvider: traces})
			if err != nil {
				b.Fatal(err)
			}
			var msgs []postrider.Message
			for i := range 500 {
				m := event(fmt.Sprint(i))
				m.Headers["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-" + sampled
				msgs = append(msgs, m)
			}
			b.ReportAllocs()
			for b.Loop() {
				_, told := o.Publish(b.Context(), "default", msgs)
				told(nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(msgs)), "ns/message")
		})
	}
}

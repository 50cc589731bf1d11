package otel_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
)

func parentOf(c trace.SpanContext) string {
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

func TestEnqueue(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	ctx, request := s.tracer.Start(t.Context(), "POST /orders")
	msgs := []postrider.Message{event("1"), event("2")}
	msgs[0].CorrelationID = "checkout-7"
	msgs[1].Type = "order.paid"
	_, told := s.o.Enqueue(ctx, msgs)
	told([]int{1}, nil)
	for i, name := range []string{"create order.placed", "create order.paid"} {
		span := s.one(name)
		if span.Parent().SpanID() != request.SpanContext().SpanID() || span.SpanKind() != trace.SpanKindProducer {
			t.Errorf("%s is a %s below %s", name, span.SpanKind(), span.Parent().SpanID())
		}
		if got, want := msgs[i].Headers["traceparent"], parentOf(span.SpanContext()); got != want {
			t.Errorf("message %d has traceparent %q, want that of its span, %q", i, got, want)
		}
		want := map[string]string{
			"messaging.system": "postrider", "messaging.operation.name": "create", "messaging.operation.type": "create",
			"messaging.message.id": msgs[i].ID.String(), "messaging.destination.name": "orders", "postrider.key": "",
			"messaging.message.conversation_id": msgs[i].CorrelationID, "postrider.repeated": []string{"", "true"}[i],
		}
		for name, want := range want {
			if got := value(span.Attributes(), attributeKey(name)); got != want {
				t.Errorf("message %d: %s is %q, want %q", i, name, got, want)
			}
		}
	}
}

// Many messages share a span, and each can be traced to it.
func TestEnqueueMany(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	var msgs []postrider.Message
	for range 17 {
		msgs = append(msgs, event("1"))
	}
	_, told := s.o.Enqueue(t.Context(), msgs)
	told([]int{3}, nil)
	span := s.one("create order.placed")
	if got := value(span.Attributes(), "messaging.batch.message_count"); got != "17" {
		t.Errorf("the span counts %q messages", got)
	}
	for i := range msgs {
		if got := msgs[i].Headers["traceparent"]; got != parentOf(span.SpanContext()) {
			t.Errorf("message %d has traceparent %q", i, got)
		}
	}
	msgs[2].Type, msgs[2].Headers = "order.paid", make(map[string]string)
	_, told = s.o.Enqueue(t.Context(), msgs)
	told(nil, nil)
	if got := msgs[2].Headers["traceparent"]; got != parentOf(s.one("create").SpanContext()) {
		t.Errorf("the mixed call left traceparent %q", got)
	}
	if got := msgs[3].Headers["traceparent"]; got != parentOf(span.SpanContext()) {
		t.Errorf("a context that was there has become %q", got)
	}
}

// A context that the caller has set, for example when forwarding a message, is not replaced.
func TestEnqueueForwarded(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	msgs := []postrider.Message{event("1"), event("2")}
	msgs[0].Headers["traceparent"] = given
	_, told := s.o.Enqueue(t.Context(), msgs)
	told([]int{0}, nil)
	if got := msgs[0].Headers["traceparent"]; got != given {
		t.Errorf("traceparent has become %q", got)
	}
	s.one("create order.placed") // only of the other message
}

func TestEnqueueFails(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	_, told := s.o.Enqueue(t.Context(), []postrider.Message{event("1")})
	told(nil, &postrider.InvalidError{Field: "Type", Reason: "is empty"})
	span := s.one("create order.placed")
	if span.Status().Code != codes.Error || value(span.Attributes(), "error.type") != "invalid" {
		t.Errorf("status %v, error.type %q", span.Status(), value(span.Attributes(), "error.type"))
	}
}

// Unsampled messages are not recorded, but consumers must learn that, so that they do not start
// their own traces.
func TestEnqueueUnsampled(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.NeverSample())
	ctx, request := s.tracer.Start(t.Context(), "POST /orders")
	msgs := []postrider.Message{event("1")}
	_, told := s.o.Enqueue(ctx, msgs)
	told(nil, nil)
	got := msgs[0].Headers["traceparent"]
	if !strings.Contains(got, request.SpanContext().TraceID().String()) || !strings.HasSuffix(got, "-00") {
		t.Errorf("traceparent is %q, want the request's trace with flags 00", got)
	}
	_, sent := s.o.Publish(t.Context(), "default", msgs)
	sent(nil)
	if n := len(s.spans.Ended()); n > 0 {
		t.Errorf("%d spans were recorded", n)
	}
}

// Without an SDK the context of the caller goes through.
func TestEnqueueWithoutSDK(t *testing.T) {
	o, err := otel.New(otel.Config{TracerProvider: noop.NewTracerProvider()})
	if err != nil {
		t.Fatal(err)
	}
	const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": given})
	msgs := []postrider.Message{event("1")}
	_, told := o.Enqueue(ctx, msgs)
	told(nil, errors.New("refused"))
	if got := msgs[0].Headers["traceparent"]; got != given {
		t.Errorf("traceparent is %q, want the caller's", got)
	}
}

// Baggage is carried if the propagator supports it, and reaches the handler.
func TestBaggage(t *testing.T) {
	member, err := baggage.NewMember("plan", "gold")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	ctx := baggage.ContextWithBaggage(t.Context(), bag)
	both := propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	for want, p := range map[string]propagation.TextMapPropagator{"gold": both, "": propagation.TraceContext{}} {
		s := newScene(t, otel.Config{Propagator: p}, sdktrace.AlwaysSample())
		msgs := []postrider.Message{event("1")}
		_, told := s.o.Enqueue(ctx, msgs)
		told(nil, nil)
		handler, done := s.o.Handle(context.Background(), "billing", &msgs[0])
		done(nil)
		if got := baggage.FromContext(handler).Member("plan").Value(); got != want {
			t.Errorf("the handler's baggage is %q, want %q", got, want)
		}
	}
}

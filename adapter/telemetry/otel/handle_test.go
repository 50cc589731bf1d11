package otel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
	"github.com/postrider/postrider/broker/middleware"
)

// TestHandleRelations checks how a process span relates to the creation of its message, and to an
// existing span such as that of a webhook request.
func TestHandleRelations(t *testing.T) {
	for _, c := range []struct {
		name                   string
		link, created, around  bool
		wantParent, wantLinked string
	}{
		{name: "alone"},
		{name: "created", created: true, wantParent: "create order.placed"},
		{name: "created, around", created: true, around: true, wantParent: "create order.placed", wantLinked: "around"},
		{name: "around", around: true, wantParent: "around"},
		{name: "link", link: true, created: true, wantLinked: "create order.placed"},
		{name: "link, around", link: true, created: true, around: true, wantParent: "around", wantLinked: "create order.placed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, otel.Config{Link: c.link}, sdktrace.AlwaysSample())
			ctx, m := t.Context(), event("1")
			if c.created {
				m = s.created(1)[0]
			}
			if c.around {
				var span trace.Span
				ctx, span = s.tracer.Start(ctx, "around")
				span.End()
			}
			own, told := s.o.Handle(ctx, "billing", &m)
			told(nil)
			names := map[trace.SpanID]string{{}: ""}
			for _, span := range s.spans.Ended() {
				names[span.SpanContext().SpanID()] = span.Name()
			}
			span := s.one("process orders")
			linked := ""
			for _, l := range span.Links() {
				linked += names[l.SpanContext.SpanID()]
			}
			if got := names[span.Parent().SpanID()]; got != c.wantParent || linked != c.wantLinked {
				t.Errorf("it is below %q and linked to %q, want %q and %q", got, linked, c.wantParent, c.wantLinked)
			}
			if !trace.SpanContextFromContext(own).Equal(span.SpanContext()) {
				t.Error("the handler's context does not carry the span")
			}
			if value(span.Attributes(), "messaging.consumer.group.name") != "billing" || span.SpanKind() != trace.SpanKindConsumer {
				t.Errorf("it is a %s: %v", span.SpanKind(), span.Attributes())
			}
		})
	}
}

type refusal struct{}

func (refusal) Error() string { return "refused" }

func TestHandleErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "_OTHER"},
		{fmt.Errorf("charging: %w", refusal{}), "otel_test.refusal"},
		{postrider.Permanent(refusal{}), "permanent"},
		{fmt.Errorf("charging: %w", context.DeadlineExceeded), "timeout"},
		{context.Canceled, "canceled"},
		{errors.Join(refusal{}, refusal{}), "_OTHER"},
	} {
		for _, text := range []bool{false, true} {
			s := newScene(t, otel.Config{ErrorText: text}, sdktrace.AlwaysSample())
			m := event("1")
			_, told := s.o.Handle(t.Context(), "billing", &m)
			told(c.err)
			span := s.one("process orders")
			if got := value(span.Attributes(), "error.type"); got != c.want || span.Status().Code != codes.Error {
				t.Errorf("%v: error.type is %q, want %q; status %v", c.err, got, c.want, span.Status())
			}
			if shown := span.Status().Description; text != (shown == c.err.Error()) || !text && shown != "" {
				t.Errorf("%v: the status says %q, with ErrorText %t", c.err, shown, text)
			}
		}
	}
}

// An outer layer may turn a panic into an error; the span must not stay open.
func TestHandlerPanics(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	h := middleware.Wrap(func(context.Context, postrider.Message) error { panic("broken") }, postrider.Observe("billing", s.o))
	func() {
		defer func() { _ = recover() }()
		_ = h(t.Context(), event("1"))
	}()
	if got := s.one("process orders").Status().Code; got != codes.Error {
		t.Errorf("status is %v", got)
	}
}

func TestLogHandler(t *testing.T) {
	s := newScene(t, otel.Config{}, sdktrace.AlwaysSample())
	var out strings.Builder
	log := slog.New(otel.LogHandler(slog.NewTextHandler(&out, nil))).With("service", "billing")
	m := event("1")
	ctx, told := s.o.Handle(t.Context(), "billing", &m)
	log.InfoContext(ctx, "charged")
	told(nil)
	log.Info("idle")
	lines := strings.Split(out.String(), "\n")
	c := s.one("process orders").SpanContext()
	if want := "service=billing trace_id=" + c.TraceID().String() + " span_id=" + c.SpanID().String(); !strings.HasSuffix(lines[0], want) {
		t.Errorf("got %q, want it to end with %q", lines[0], want)
	}
	if strings.Contains(lines[1], "trace_id") {
		t.Errorf("without a span: %q", lines[1])
	}
}

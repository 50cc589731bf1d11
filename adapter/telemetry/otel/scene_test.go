package otel_test

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
)

// scene is an observer with a real SDK.
type scene struct {
	t      *testing.T
	o      *otel.Observer
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer // of the surrounding program
	reader *sdkmetric.ManualReader
}

func newScene(t *testing.T, cfg otel.Config, sampler sdktrace.Sampler) *scene {
	t.Helper()
	s := &scene{t: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	limits := sdktrace.NewSpanLimits()
	limits.LinkCountLimit = -1
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans), sdktrace.WithSampler(sampler), sdktrace.WithRawSpanLimits(limits))
	cfg.TracerProvider = traces
	cfg.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	s.tracer = traces.Tracer("test")
	var err error
	if s.o, err = otel.New(cfg); err != nil {
		t.Fatal(err)
	}
	return s
}

// event returns a message as an outbox passes it to an observer.
func event(id string) postrider.Message {
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: id}, []byte("{}"))
	m.Headers = make(map[string]string)
	m.Topic = "orders"
	return m
}

// created returns messages that were enqueued in their own spans.
func (s *scene) created(n int) []postrider.Message {
	var msgs []postrider.Message
	for i := range n {
		m := []postrider.Message{event(fmt.Sprint(i))}
		_, told := s.o.Enqueue(context.Background(), m)
		told(nil, nil)
		msgs = append(msgs, m...)
	}
	return msgs
}

// named returns the ended spans with a name.
func (s *scene) named(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, span := range s.spans.Ended() {
		if span.Name() == name {
			found = append(found, span)
		}
	}
	return found
}

// one returns the only span with a name.
func (s *scene) one(name string) sdktrace.ReadOnlySpan {
	s.t.Helper()
	found := s.named(name)
	if len(found) != 1 {
		var names []string
		for _, span := range s.spans.Ended() {
			names = append(names, span.Name())
		}
		s.t.Fatalf("there are %d spans %q, want 1; all: %q", len(found), name, names)
	}
	return found[0]
}

// value returns an attribute as text, "" if it is not there.
func value(attrs []attribute.KeyValue, name attribute.Key) string {
	for _, a := range attrs {
		if a.Key == name {
			return a.Value.String()
		}
	}
	return ""
}

// metrics returns all measurements by name.
func (s *scene) metrics() map[string]metricdata.Aggregation {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(context.Background(), &all); err != nil {
		s.t.Fatal(err)
	}
	found := make(map[string]metricdata.Aggregation)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			found[m.Name] = m.Data
		}
	}
	return found
}

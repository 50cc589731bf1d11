package otel_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/middleware"
)

// A relay and a consumer in one trace. In an application the providers are the global ones, so that the configuration is empty,
// and the outbox is observed too: postrider.ObserveOutbox(outbox, observer).
func ExampleNew() {
	recorder := tracetest.NewSpanRecorder()
	observer, err := otel.New(otel.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
		System:         "nats",
	})
	if err != nil {
		panic(err)
	}
	queue := memory.New()
	publisher := broker.ObservePublisher("default", queue, observer)
	consumer := middleware.Use(queue.Consumer("orders", "billing", 0), postrider.Observe("billing", observer))

	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "7"}, []byte("{}"))
	m.Topic = "orders"
	m.Headers = map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	publisher.Publish(context.Background(), []postrider.Message{m})
	ctx, stop := context.WithCancel(context.Background())
	err = consumer.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		fmt.Println("handled in trace", trace.SpanContextFromContext(ctx).TraceID())
		stop()
		return nil
	})
	for _, span := range recorder.Ended() {
		fmt.Println(span.SpanKind(), span.Name())
	}
	fmt.Println(err)
	// Output:
	// handled in trace 4bf92f3577b34da6a3ce929d0e0e4736
	// client send orders
	// client send default
	// consumer process orders
	// <nil>
}

// Log lines with the IDs of the trace.
func ExampleLogHandler() {
	plain := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	log := slog.New(otel.LogHandler(plain))

	id, _ := trace.TraceIDFromHex("4bf92f3577b34da6a3ce929d0e0e4736")
	span, _ := trace.SpanIDFromHex("00f067aa0ba902b7")
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span}))
	log.InfoContext(ctx, "charged", "order", 7)
	// Output: level=INFO msg=charged order=7 trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

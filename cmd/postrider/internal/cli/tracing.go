package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// traceStop is how long the process waits at its end until all spans are sent.
const traceStop = 5 * time.Second

// tracing exports spans as the OTEL_* variables configure it.
type tracing struct{ provider *trace.TracerProvider }

// newTracing returns nil unless an OTEL_* variable names an exporter. OpenTelemetry's own default
// would export to this machine.
func newTracing(ctx context.Context) (*tracing, error) {
	wanted := false
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		wanted = wanted || os.Getenv(name) != ""
	}
	if !wanted || os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return nil, err
	}
	if autoexport.IsNoneSpanExporter(exporter) {
		return nil, nil
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "postrider")),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, err
	}
	return &tracing{trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))}, nil
}

// of returns the observer of a destination, or nil without tracing. It observes the destination and
// not the router, because only the destination knows the broker and the topic of a message.
func (t *tracing) of(d config.Destination) (postrider.Observer, error) {
	if t == nil {
		return nil, nil
	}
	driver, err := d.Driver()
	if err != nil {
		return nil, err
	}
	return otel.New(otel.Config{TracerProvider: t.provider, System: driver.Name})
}

func (t *tracing) close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceStop)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

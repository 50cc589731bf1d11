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

// traceStop is how long the end of the process waits for spans to be sent.
const traceStop = 5 * time.Second

// tracing sends spans to where the OTEL_* variables say.
type tracing struct{ provider *trace.TracerProvider }

// newTracing returns nil if nobody wants spans: OpenTelemetry's own default would send them to this machine.
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

// of returns what traces what is sent to a destination: only there is it known which broker it is, and which topic a message goes to. Nil
// without tracing.
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

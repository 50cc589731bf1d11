package otel

import (
	"cmp"
	"slices"
	"sync"

	global "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Config configures an [Observer]. The zero value works.
type Config struct {
	// TracerProvider records the spans. Defaults to the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider records the metrics. Defaults to the global one.
	MeterProvider metric.MeterProvider
	// Propagator writes contexts to headers and reads them. Defaults to the global one, or to the
	// W3C trace context if none is set when [New] is called, because without a propagator no trace
	// would reach a consumer.
	Propagator propagation.TextMapPropagator
	// System is recorded as the messaging system, such as "kafka", "rabbitmq" or "nats". Defaults
	// to "postrider".
	System string
	// Link starts a new trace for each processed message, with a link to the span of its creation.
	// Defaults to false: processing is a child of creation, and one trace shows the whole path.
	Link bool
	// Keys records the ordering keys of messages. Defaults to false, because a key can identify a
	// person.
	Keys bool
	// ErrorText records the texts of errors. Defaults to false, because a text can quote data: only
	// the kind of an error is recorded.
	ErrorText bool
}

// Observer is a [postrider.Observer] that traces and measures. It is safe for concurrent use.
type Observer struct {
	cfg    Config
	tracer trace.Tracer
	meters meters
	w3c    bool // the propagator uses the header traceParent
	system attribute.KeyValue
	sends  sync.Map // measures by feed name
}

// New returns an observer. It fails if the MeterProvider refuses an instrument.
func New(cfg Config) (*Observer, error) {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = global.GetTracerProvider()
	}
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = global.GetMeterProvider()
	}
	if cfg.Propagator == nil {
		cfg.Propagator = global.GetTextMapPropagator()
		if len(cfg.Propagator.Fields()) == 0 {
			cfg.Propagator = propagation.TraceContext{}
		}
	}
	cfg.System = cmp.Or(cfg.System, "postrider")
	meters, err := newMeters(cfg.MeterProvider.Meter(scope))
	if err != nil {
		return nil, err
	}
	return &Observer{
		cfg:    cfg,
		tracer: cfg.TracerProvider.Tracer(scope),
		meters: meters,
		w3c:    slices.Contains(cfg.Propagator.Fields(), traceParent),
		system: attrSystem.String(cfg.System),
	}, nil
}

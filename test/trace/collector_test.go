package trace_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// span is a received span.
type span struct {
	service, name     string
	kind              string
	trace, id, parent string
	start, end        time.Time
	attributes        map[string]string
	links             []string // IDs of spans
	failed            bool
}

// backend is a tracing backend: an OTLP endpoint.
type backend struct {
	*httptest.Server
	mu    sync.Mutex
	spans []span
	raw   bytes.Buffer // everything received
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := new(backend)
	b.Server = httptest.NewServer(http.HandlerFunc(b.receive))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) receive(w http.ResponseWriter, r *http.Request) {
	var request collector.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not a trace", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.raw.Write(body)
	for _, resource := range request.ResourceSpans {
		service := flat(resource.Resource.Attributes)["service.name"]
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				b.spans = append(b.spans, read(service, s))
			}
		}
	}
	answer, _ := proto.Marshal(new(collector.ExportTraceServiceResponse))
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func read(service string, s *otlp.Span) span {
	found := span{
		service: service, name: s.Name,
		kind:  strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")),
		trace: hex.EncodeToString(s.TraceId), id: hex.EncodeToString(s.SpanId), parent: hex.EncodeToString(s.ParentSpanId),
		start: time.Unix(0, int64(s.StartTimeUnixNano)), end: time.Unix(0, int64(s.EndTimeUnixNano)),
		attributes: flat(s.Attributes),
		failed:     s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR,
	}
	for _, l := range s.Links {
		found.links = append(found.links, hex.EncodeToString(l.SpanId))
	}
	return found
}

func flat(attributes []*common.KeyValue) map[string]string {
	all := make(map[string]string)
	for _, a := range attributes {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_IntValue:
			all[a.Key] = strconv.FormatInt(v.IntValue, 10)
		default:
			all[a.Key] = a.Value.GetStringValue()
		}
	}
	return all
}

// provider returns the tracer provider of one service, which sends to the backend over HTTP.
func (b *backend) provider(t *testing.T, service string) *sdktrace.TracerProvider {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(b.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
}

// received flushes the services and returns all spans, in order of their start.
func (b *backend) received(t *testing.T, services ...*service) []span {
	t.Helper()
	for _, s := range services {
		if err := s.provider.Shutdown(context.Background()); err != nil {
			t.Errorf("%s could not send its spans: %v", s.name, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.spans)
	slices.SortStableFunc(all, func(x, y span) int { return x.start.Compare(y.start) })
	return all
}

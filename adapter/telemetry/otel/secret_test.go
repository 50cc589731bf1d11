package otel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
)

// Contents of messages and error texts do not appear in spans and metrics. Keys do if configured.
func TestSecrets(t *testing.T) {
	for _, keys := range []bool{false, true} {
		s := newScene(t, otel.Config{Keys: keys}, sdktrace.AlwaysSample())
		m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "secret-key"}, []byte("secret-payload"))
		m.Headers = map[string]string{"authorization": "secret-header"}
		m.TenantID, m.DedupKey = "secret-tenant", "secret-dedup"
		err := errors.New("dial postgres://user:secret-dsn@db/app")
		msgs := []postrider.Message{m}
		_, enqueued := s.o.Enqueue(t.Context(), msgs)
		enqueued(nil, err)
		_, published := s.o.Publish(t.Context(), "default", msgs)
		published([]error{postrider.Permanent(err)})
		_, handled := s.o.Handle(t.Context(), "billing", &msgs[0])
		handled(err)
		if n := len(s.spans.Ended()); n != 4 {
			t.Errorf("%d spans, want 4", n)
		}
		shown, problem := json.Marshal(tracetest.SpanStubsFromReadOnlySpans(s.spans.Ended()))
		if problem != nil {
			t.Fatal(problem)
		}
		text := string(shown) + fmt.Sprintf("%+v", s.metrics())
		for _, secret := range []string{"payload", "header", "tenant", "dedup", "dsn"} {
			if strings.Contains(text, "secret-"+secret) {
				t.Errorf("the %s of a message is recorded", secret)
			}
		}
		if got := strings.Contains(text, "secret-key"); got != keys {
			t.Errorf("with Keys %t, a key is recorded: %t", keys, got)
		}
	}
}

// Users choose their SDK: outside of tests the package depends on the API only.
func TestNoSDK(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, "/otel/sdk") || strings.Contains(i.Path.Value, "/exporters/") {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}

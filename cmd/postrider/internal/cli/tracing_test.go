package cli

import (
	"log/slog"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// TestTracedFeed holds that spans name the feed, also where several feeds lead to one destination.
func TestTracedFeed(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	_, a := newRoot(streams{})
	s := &service{log: slog.New(slog.DiscardHandler), tracing: &tracing{provider: provider}}
	d, err := a.openTraced(s, "nowhere", config.Destination{URL: "discard:"})
	if err != nil {
		t.Fatal(err)
	}
	for _, feed := range []string{"orders", "audit"} {
		spans.Reset()
		m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "1"}, "x")
		if errs := d.of(feed).Publish(t.Context(), []postrider.Message{m}); errs != nil {
			t.Fatal(errs)
		}
		found := spans.GetSpans()
		if len(found) == 0 {
			t.Fatal("there are no spans")
		}
		named := false
		for _, span := range found {
			for _, attr := range span.Attributes {
				if attr.Key == "postrider.feed" {
					named = true
					if got := attr.Value.AsString(); got != feed {
						t.Errorf("span %q is of feed %q, want %q", span.Name, got, feed)
					}
				}
			}
		}
		if !named {
			t.Errorf("no span names its feed: %+v", found)
		}
	}
}

package otel_test

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
)

func TestMetrics(t *testing.T) {
	s := newScene(t, otel.Config{System: "kafka"}, sdktrace.NeverSample())
	msgs := s.created(5)
	msgs[4].DeliverAfter = time.Now().Add(-time.Hour)
	msgs[4].ID = postrider.ID{} // the ID has no time, but the schedule has
	msgs[4].ID[6] = 0x70        // version 7, of 1970
	_, told := s.o.Publish(t.Context(), "default", msgs)
	told([]error{nil, postrider.Permanent(errors.New("no")), errors.New("?"), errors.New("?"), nil})
	_, done := s.o.Handle(t.Context(), "billing", &msgs[0])
	done(nil)

	all := s.metrics()
	sent := make(map[string]int64)
	for _, p := range all["messaging.client.sent.messages"].(metricdata.Sum[int64]).DataPoints {
		class, _ := p.Attributes.Value("error.type")
		sent[class.AsString()] += p.Value
		if feed, _ := p.Attributes.Value("postrider.feed"); feed.AsString() != "default" {
			t.Errorf("a point of feed %q", feed.AsString())
		}
	}
	if sent[""] != 2 || sent["permanent"] != 1 || sent["unknown"] != 2 {
		t.Errorf("sent messages by error.type: %v", sent)
	}
	counts := make(map[string]uint64)
	for _, name := range []string{"messaging.client.operation.duration", "messaging.process.duration", "postrider.publish.latency"} {
		for _, p := range all[name].(metricdata.Histogram[float64]).DataPoints {
			op, _ := p.Attributes.Value("messaging.operation.name")
			counts[name+" "+op.AsString()] += p.Count
			if system, _ := p.Attributes.Value("messaging.system"); system.AsString() != "kafka" {
				t.Errorf("%s: the system is %q", name, system.AsString())
			}
			if longest, _ := p.Max.Value(); name == "postrider.publish.latency" && (longest < 3600 || longest > 3700) {
				t.Errorf("the longest latency is %v s, want an hour: that since the schedule", longest)
			}
		}
	}
	for name, want := range map[string]uint64{
		"messaging.client.operation.duration create": 5, "messaging.client.operation.duration send": 1,
		"messaging.process.duration process": 1, "postrider.publish.latency send": 2,
	} {
		if counts[name] != want {
			t.Errorf("%s has %d values, want %d", name, counts[name], want)
		}
	}
}

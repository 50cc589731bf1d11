package otel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/postrider/postrider"
)

// Buckets of durations, in seconds: those that the conventions recommend, and longer ones for the
// time in an outbox.
var (
	buckets     = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
	longBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200}
)

type meters struct {
	operation metric.Float64Histogram
	process   metric.Float64Histogram
	latency   metric.Float64Histogram
	sent      metric.Int64Counter
}

func newMeters(m metric.Meter) (meters, error) {
	var errs []error
	duration := func(name, doc string, buckets []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(doc),
			metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	all := meters{
		operation: duration(metricOperation, "Duration of calls that enqueue or publish messages.", buckets),
		process:   duration(metricProcess, "Duration of handling a message.", buckets),
		latency:   duration(metricLatency, "Time from enqueueing a message to the broker's confirmation.", longBuckets),
	}
	var err error
	all.sent, err = m.Int64Counter(metricSent, metric.WithUnit("{message}"),
		metric.WithDescription("Messages that were handed to the broker, also those that it did not confirm."))
	return all, errors.Join(append(errs, err)...)
}

// measures are the attributes of a feed's metrics. They exclude topic names, because there can be
// too many.
type measures struct {
	good   metric.MeasurementOption
	failed map[postrider.Class]metric.MeasurementOption
}

func (o *Observer) measuresOf(feed string) *measures {
	if m, ok := o.sends.Load(feed); ok {
		return m.(*measures) //nolint:errcheck // there are measures only
	}
	m := &measures{failed: make(map[postrider.Class]metric.MeasurementOption)}
	m.good = o.measure(opSend, attrFeed.String(feed))
	for _, c := range []postrider.Class{postrider.ClassUnknown, postrider.ClassPermanent, postrider.ClassUnavailable} {
		m.failed[c] = o.measure(opSend, attrFeed.String(feed), attrErrorType.String(c.String()))
	}
	kept, _ := o.sends.LoadOrStore(feed, m)
	return kept.(*measures) //nolint:errcheck // there are measures only
}

func (o *Observer) measure(operation string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(o.operation(operation), more...)...))
}

// operation returns the attributes common to all spans and metrics of an operation, with room for
// more.
func (o *Observer) operation(name string) []attribute.KeyValue {
	return append(make([]attribute.KeyValue, 0, 10), o.system, attrOperation.String(name), attrOperationOf.String(name))
}

// sent records the outcome of a call.
func (o *Observer) sent(ctx context.Context, feed string, msgs []postrider.Message, errs []error, start, end time.Time) {
	if !o.meters.operation.Enabled(ctx) && !o.meters.sent.Enabled(ctx) && !o.meters.latency.Enabled(ctx) {
		return
	}
	of := o.measuresOf(feed)
	outcome := of.good
	var failed [3]int64
	good := int64(len(msgs))
	for _, err := range errs {
		if err != nil {
			c := postrider.ClassOf(err)
			outcome = of.failed[c]
			failed[c]++
			good--
		}
	}
	o.meters.operation.Record(ctx, end.Sub(start).Seconds(), outcome)
	if good > 0 {
		o.meters.sent.Add(ctx, good, of.good)
	}
	for c, n := range failed {
		if n > 0 {
			o.meters.sent.Add(ctx, n, of.failed[postrider.Class(c)])
		}
	}
	if good == 0 || !o.meters.latency.Enabled(ctx) {
		return
	}
	for i := range msgs {
		if errs != nil && errs[i] != nil {
			continue
		}
		if since := due(&msgs[i]); !since.IsZero() {
			o.meters.latency.Record(ctx, max(0, end.Sub(since).Seconds()), of.good)
		}
	}
}

// due returns when m could first have been sent, or the zero time if neither its ID nor OccurredAt
// tells.
func due(m *postrider.Message) time.Time {
	t := m.ID.Time()
	if t.IsZero() { // for example in an adopted table
		t = m.OccurredAt
	}
	if m.DeliverAfter.After(t) {
		return m.DeliverAfter
	}
	return t
}

package prometheus

import (
	"slices"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
)

// Description describes a metric.
type Description struct {
	Name     string
	Kind     string // counter, gauge or histogram
	Help     string
	Labels   []string
	Question string // the question that it answers; one of [Questions]
}

// Descriptions returns all metrics, in the order of docs/metrics.md. Their names begin with
// postrider_.
func Descriptions() []Description {
	all := make([]Description, len(families))
	for i, f := range families {
		all[i] = f.Description
		all[i].Labels = slices.Clone(f.Labels)
	}
	return all
}

// Questions returns the questions that the metrics answer, in the order of docs/metrics.md.
func Questions() []string { return []string{late, fast, fails, costs, holds, reconcilers, self} }

const (
	late        = "What is late?"
	fast        = "How fast is it?"
	fails       = "What fails?"
	costs       = "What does it cost?"
	holds       = "Who holds what?"
	reconcilers = "What did reconcilers find?"
	self        = "Are the figures alive?"
)

// families holds all metrics, in the order of their declaration.
var families []*family

// family is a metric with all its labels.
type family struct {
	Description
	desc *client.Desc
}

func declare(question, kind, name, help string, labels ...string) *family {
	f := &family{
		Description: Description{"postrider_" + name, kind, help, labels, question},
		desc:        client.NewDesc("postrider_"+name, help, labels, nil),
	}
	families = append(families, f)
	return f
}

func gauge(question, name, help string, labels ...string) *family {
	return declare(question, "gauge", name, help, labels...)
}

func counter(question, name, help string, labels ...string) *family {
	return declare(question, "counter", name, help, labels...)
}

func histogram(question, name, help string, labels ...string) *family { //nolint:unparam // as gauge and counter
	return declare(question, "histogram", name, help, labels...)
}

// send adds one sample to a scrape.
func (f *family) send(to chan<- client.Metric, value float64, labels ...string) {
	kind := client.GaugeValue
	if f.Kind == "counter" {
		kind = client.CounterValue
	}
	for i := range labels {
		labels[i] = label(labels[i])
	}
	to <- client.MustNewConstMetric(f.desc, kind, value, labels...)
}

func (f *family) counterVec() *client.CounterVec {
	return client.NewCounterVec(client.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
}

func (f *family) histogramVec(buckets []float64) *client.HistogramVec {
	return client.NewHistogramVec(client.HistogramOpts{Name: f.Name, Help: f.Help, Buckets: buckets}, f.Labels)
}

// label makes a name valid as a label value: the client panics on invalid UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
)

// Config configures [Metrics]. The zero value works.
type Config struct {
	// Registerer is where the metrics are registered, such as a registry that the application
	// serves itself. Defaults to a new registry, which [Metrics.Handler] serves. The client's
	// global registry is used only if it is given here.
	Registerer client.Registerer
	// Runtime also registers the metrics of the Go runtime and of the process, unless they are
	// registered already. Defaults to false.
	Runtime bool

	// LatencyBuckets are the bounds of postrider_publish_latency_seconds and postrider_delivery_latency_seconds, in seconds.
	// Defaults to 2, 5, 10, 25, 50, 100, 250 and 500 ms, and 1, 2.5, 5, 10, 30, 60, 300 and 1800 s.
	LatencyBuckets []float64
	// DurationBuckets are the bounds of postrider_publish_call_duration_seconds and postrider_handle_duration_seconds.
	// Defaults to 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250 and 500 ms, and 1, 2.5, 5, 10 and 30 s.
	DurationBuckets []float64

	// Interval is the interval between queries of a database for the state of its feeds. Figures
	// older than three intervals are not shown. Defaults to 5 s.
	Interval time.Duration
	// HealthInterval is the interval between queries for the health of a database, which are more
	// expensive. Defaults to 30 s.
	HealthInterval time.Duration
	// Timeout limits the duration of one query. Defaults to 5 s.
	Timeout time.Duration

	// Logger receives outages and recoveries of databases, and errors of scrapes. Defaults to
	// [slog.Default].
	Logger *slog.Logger
}

// fresh is how many intervals a figure is shown for.
const fresh = 3

func (c Config) withDefaults() Config {
	if c.Registerer == nil {
		c.Registerer = client.NewRegistry()
	}
	if c.LatencyBuckets == nil {
		c.LatencyBuckets = []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	}
	if c.DurationBuckets == nil {
		c.DurationBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	}
	c.Interval = cmp.Or(c.Interval, 5*time.Second)
	c.HealthInterval = cmp.Or(c.HealthInterval, 30*time.Second)
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func (c *Config) validate() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Interval", c.Interval}, {"HealthInterval", c.HealthInterval}, {"Timeout", c.Timeout}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("prometheus: %s is %v: want a positive duration", d.name, d.value))
		}
	}
	for name, bounds := range map[string][]float64{"LatencyBuckets": c.LatencyBuckets, "DurationBuckets": c.DurationBuckets} {
		if !ascending(bounds) {
			errs = append(errs, fmt.Errorf("prometheus: %s is %v: want bounds that grow", name, bounds))
		}
	}
	return errors.Join(errs...)
}

func ascending(bounds []float64) bool {
	last := math.Inf(-1)
	for _, b := range bounds {
		if !(b > last) { // also true for NaN
			return false
		}
		last = b
	}
	return true
}

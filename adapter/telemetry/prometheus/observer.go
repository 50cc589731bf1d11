package prometheus

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider"
)

// observed holds what the observer counts.
type observed struct {
	accepted, repeated, failed client.Counter
	feeds                      children[*feed]
	consumers                  children[*consumer]
	collectors                 []client.Collector
}

type feed struct {
	latency, call client.Observer
	bytes         client.Counter
	failures      [3]client.Counter // by class
}

type consumer struct {
	duration, latency client.Observer
	ok, failed        client.Counter
}

func newObserved(cfg *Config) *observed {
	enqueued := enqueuedMessages.counterVec()
	latency, call := publishLatency.histogramVec(cfg.LatencyBuckets), publishCall.histogramVec(cfg.DurationBuckets)
	bytes, failures := publishedBytes.counterVec(), publishFailures.counterVec()
	duration, delivery := handleDuration.histogramVec(cfg.DurationBuckets), deliveryLatency.histogramVec(cfg.LatencyBuckets)
	handled := handledMessages.counterVec()
	return &observed{
		accepted: enqueued.WithLabelValues("accepted"),
		repeated: enqueued.WithLabelValues("repeated"),
		failed:   enqueued.WithLabelValues("failed"),
		feeds: children[*feed]{create: func(name string) *feed {
			f := &feed{
				latency: latency.WithLabelValues(name),
				call:    call.WithLabelValues(name),
				bytes:   bytes.WithLabelValues(name),
			}
			for class := range f.failures {
				f.failures[class] = failures.WithLabelValues(name, postrider.Class(class).String())
			}
			return f
		}},
		consumers: children[*consumer]{create: func(name string) *consumer {
			return &consumer{
				duration: duration.WithLabelValues(name),
				latency:  delivery.WithLabelValues(name),
				ok:       handled.WithLabelValues(name, "ok"),
				failed:   handled.WithLabelValues(name, "error"),
			}
		}},
		collectors: []client.Collector{enqueued, latency, call, bytes, failures, duration, delivery, handled},
	}
}

func (o *observed) collect(to chan<- client.Metric) {
	for _, c := range o.collectors {
		c.Collect(to)
	}
}

// Enqueue implements [postrider.Observer].
func (m *Metrics) Enqueue(ctx context.Context, msgs []postrider.Message) (context.Context, func([]int, error)) {
	n := len(msgs)
	return ctx, func(repeats []int, err error) {
		if err != nil {
			m.observe.failed.Add(float64(n))
			return
		}
		m.observe.accepted.Add(float64(n - len(repeats)))
		m.observe.repeated.Add(float64(len(repeats)))
	}
}

// Publish implements [postrider.Observer].
func (m *Metrics) Publish(ctx context.Context, name string, msgs []postrider.Message) (context.Context, func([]error)) {
	f := m.observe.feeds.get(name)
	start := time.Now()
	return ctx, func(errs []error) {
		now := time.Now()
		f.call.Observe(now.Sub(start).Seconds())
		bytes := 0
		for i := range msgs {
			if errs != nil && errs[i] != nil {
				f.fail(errs[i])
				continue
			}
			bytes += len(msgs[i].Payload)
			observeAge(f.latency, &msgs[i], now)
		}
		f.bytes.Add(float64(bytes))
	}
}

func (f *feed) fail(err error) {
	if errors.Is(err, postrider.ErrNotTried) { // the message that failed is counted
		return
	}
	class := postrider.ClassOf(err)
	if class < 0 || int(class) >= len(f.failures) {
		class = postrider.ClassUnknown
	}
	f.failures[class].Inc()
}

// Handle implements [postrider.Observer].
func (m *Metrics) Handle(ctx context.Context, name string, msg *postrider.Message) (context.Context, func(error)) {
	c := m.observe.consumers.get(name)
	start := time.Now()
	return ctx, func(err error) {
		now := time.Now()
		c.duration.Observe(now.Sub(start).Seconds())
		if err != nil {
			c.failed.Inc()
			return
		}
		c.ok.Inc()
		observeAge(c.latency, msg, now)
	}
}

// observeAge records the time since a message was created or was due. IDs without a time, such as
// those of adopted tables, fall back to OccurredAt. Clocks of two machines may differ, so the age
// can be negative; it is then recorded as 0.
func observeAge(in client.Observer, msg *postrider.Message, now time.Time) {
	from := msg.ID.Time()
	if from.IsZero() {
		from = msg.OccurredAt
	}
	if from.IsZero() {
		return
	}
	if msg.DeliverAfter.After(from) {
		from = msg.DeliverAfter
	}
	in.Observe(max(0, now.Sub(from).Seconds()))
}

// children caches the series of each name, so that a lookup needs neither a lock nor an allocation.
type children[T any] struct {
	create func(name string) T
	known  atomic.Pointer[map[string]T]
	mu     sync.Mutex // held while adding a name
}

func (c *children[T]) get(name string) T {
	if known := c.known.Load(); known != nil {
		if child, ok := (*known)[name]; ok {
			return child
		}
	}
	return c.add(name)
}

func (c *children[T]) add(name string) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := make(map[string]T)
	if known := c.known.Load(); known != nil {
		if child, ok := (*known)[name]; ok {
			return child
		}
		maps.Copy(next, *known)
	}
	child := c.create(label(name))
	next[name] = child
	c.known.Store(&next)
	return child
}

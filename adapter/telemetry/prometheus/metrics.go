package prometheus

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/relay"
)

// Metrics is a [postrider.Observer] that counts, and a collector of the figures of relays, inboxes,
// reconcilers and databases. Its methods are safe for concurrent use.
type Metrics struct {
	cfg       Config
	observe   *observed
	relays    *totals[feedKey, relay.Stats]
	inboxes   *totals[string, inbox.Stats]
	consumers *totals[string, intake.Stats]

	mu          sync.Mutex
	reconcilers []*reconciler
	databases   map[string]entry
	changed     chan struct{} // closed when a database is added
}

var _ postrider.Observer = (*Metrics)(nil)

// New returns registered metrics. It fails if the registry already has metrics with these names.
func New(cfg Config) (*Metrics, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m := &Metrics{
		cfg:       cfg,
		observe:   newObserved(&cfg),
		relays:    newTotals[feedKey](addRelayStats),
		inboxes:   newTotals[string](addInboxStats),
		consumers: newTotals[string](addConsumerStats),
		databases: make(map[string]entry),
		changed:   make(chan struct{}),
	}
	if err := cfg.Registerer.Register(collector{m}); err != nil {
		return nil, fmt.Errorf("prometheus: one Metrics for each registry: %w", err)
	}
	if cfg.Runtime {
		for _, c := range []client.Collector{
			collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		} {
			var there client.AlreadyRegisteredError
			if err := cfg.Registerer.Register(c); err != nil && !errors.As(err, &there) {
				return nil, fmt.Errorf("prometheus: metrics of the runtime: %w", err)
			}
		}
	}
	return m, nil
}

// Handler serves everything in the registry, as OpenMetrics or in Prometheus' text format, as
// requested. If Config.Registerer cannot be read, it serves these metrics alone.
func (m *Metrics) Handler() http.Handler {
	from, ok := m.cfg.Registerer.(client.Gatherer)
	if !ok {
		own := client.NewRegistry()
		own.MustRegister(collector{m})
		from = own
	}
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorHandling:     promhttp.ContinueOnError, // one broken metric must not hide all others
		ErrorLog:          errorLog{m.cfg.Logger},
	})
}

type errorLog struct{ to *slog.Logger }

func (l errorLog) Println(v ...any) {
	l.to.Error("prometheus: a scrape lacks metrics", "err", fmt.Sprint(v...))
}

// collector is called by the client at each scrape. It does not query databases.
type collector struct{ *Metrics }

func (collector) Describe(to chan<- *client.Desc) {
	for _, f := range families {
		to <- f.desc
	}
}

func (m collector) Collect(to chan<- client.Metric) {
	buildInfo.send(to, 1, version(), runtime.Version())
	m.observe.collect(to)
	for key, s := range m.relays.sums() {
		sendRelay(to, key, &s)
	}
	for consumer, s := range m.inboxes.sums() {
		sendInbox(to, consumer, &s)
	}
	for consumer, s := range m.consumers.sums() {
		sendConsumer(to, consumer, &s)
	}
	m.collectReconcilers(to)
	databases, _ := m.entries()
	for _, e := range databases {
		e.collect(to, &m.cfg)
	}
}

// version is the version of the Postrider module in this binary.
var version = sync.OnceValue(func() string {
	const path = "github.com/postrider/postrider"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if strings.HasPrefix(info.Main.Path, path) {
		return info.Main.Version
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
})

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/telemetry/otel"
	"github.com/postrider/postrider/adapter/telemetry/prometheus"
	"github.com/postrider/postrider/broker"
)

// TelemetryResult is the cost of metrics and traces.
type TelemetryResult struct {
	PlainPerSecond   float64 `json:"plain_per_second"`
	RelayPerSecond   float64 `json:"relay_watched_per_second"`
	WatchedPerSecond float64 `json:"all_watched_per_second"`
	RelayRatio       float64 `json:"relay_ratio"`
	Ratio            float64 `json:"all_ratio"`
	Spans            int64   `json:"span_batches"` // received by an OTLP endpoint
	Undelivered      int64   `json:"undelivered"`
}

// sampled is the share of transactions that are traced.
const sampled = 0.01

// Telemetry measures producers at full load with a relay, in turn without telemetry, with that of
// the relay, and with that of the producers too. The relay's telemetry consists of metrics, gauges
// of the database, a scrape each second, and spans. Producers count their messages and trace one
// transaction in a hundred; each message carries its trace context. Spans go to an OTLP endpoint.
// Rates are medians over the rounds.
func Telemetry(ctx context.Context, l *Lab) (TelemetryResult, error) {
	b := newBook()
	p, err := l.hire(ctx, b)
	if err != nil {
		return TelemetryResult{}, err
	}
	defer p.dismiss()
	if err := l.warmUp(ctx, p); err != nil {
		return TelemetryResult{}, err
	}
	rates := make(map[string][]float64)
	var spans int64
	for round := 1; round <= l.Rounds; round++ {
		for _, how := range []string{"unwatched", "relay watched", "all watched"} {
			phase, n, err := l.telemetryPhase(ctx, p, how, fmt.Sprintf("round %d of %d, %s", round, l.Rounds, how))
			if err != nil {
				return TelemetryResult{}, err
			}
			rates[how] = append(rates[how], phase.committedPerSecond())
			spans += n
		}
	}
	plain, relay, all := median(rates["unwatched"]), median(rates["relay watched"]), median(rates["all watched"])
	return TelemetryResult{
		PlainPerSecond:   rounded(plain, 1),
		RelayPerSecond:   rounded(relay, 1),
		WatchedPerSecond: rounded(all, 1),
		RelayRatio:       rounded(quotient(relay, plain), 4),
		Ratio:            rounded(quotient(all, plain), 4),
		Spans:            spans,
		Undelivered:      b.undelivered(),
	}, nil
}

// telemetryPhase measures one phase, and returns how many batches of spans have arrived.
func (l *Lab) telemetryPhase(ctx context.Context, p *producers, how, what string) (phase load, spans int64, err error) {
	to := discarding(p.book)
	if how == "unwatched" {
		phase, err = l.relayedPhase(ctx, p, to, what)
		return phase, 0, err
	}
	w, err := l.watch(ctx)
	if err != nil {
		return load{}, 0, err
	}
	if how == "all watched" {
		own, bare := p.shop.(*logShop), p.shop //nolint:errcheck // this bench has no other
		p.shop = &logShop{own.pool, postrider.ObserveOutbox(own.outbox, w.observer), own.insert}
		defer func() { p.shop = bare }()
	}
	phase, err = l.relayedPhase(ctx, p, broker.ObservePublisher(defaultFeed, to, w.observer), what)
	err = errors.Join(err, w.end()) //nolint:contextcheck // it tidies up even when ctx has ended
	return phase, w.received, err
}

// Table implements [Result].
func (r TelemetryResult) Table() [][]string {
	return [][]string{
		{"producers beside a relay, unwatched", whole(r.PlainPerSecond), "messages/s"},
		{"producers beside a relay that is watched", whole(r.RelayPerSecond), "messages/s"},
		{"producers and a relay, all watched", whole(r.WatchedPerSecond), "messages/s"},
		{"ratio, with the relay watched", fraction(r.RelayRatio), ""},
		{"ratio, with all watched", fraction(r.Ratio), ""},
		{"batches of spans received", count(r.Spans), ""},
		{"not delivered", count(r.Undelivered), "messages"},
	}
}

// watcher is the telemetry of a process.
type watcher struct {
	observer postrider.Observer
	received int64 // batches of spans, valid after end

	mu       sync.Mutex
	pool     *pgxpool.Pool
	provider *trace.TracerProvider
	backend  *httptest.Server
	stop     context.CancelFunc
	work     sync.WaitGroup
}

func (l *Lab) watch(ctx context.Context) (*watcher, error) {
	w := &watcher{}
	w.backend = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the sender is this process
		w.mu.Lock()
		defer w.mu.Unlock()
		w.received++
	}))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(w.backend.URL))
	if err != nil {
		return nil, err
	}
	w.provider = trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithSampler(trace.TraceIDRatioBased(sampled)))
	spans, err := otel.New(otel.Config{TracerProvider: w.provider})
	if err != nil {
		return nil, err
	}
	metrics, err := prometheus.New(prometheus.Config{Logger: l.Logger, Runtime: true})
	if err != nil {
		return nil, err
	}
	if w.pool, err = l.pool(ctx, 1); err != nil {
		return nil, err
	}
	db, err := l.open(w.pool)
	if err != nil {
		return nil, err
	}
	metrics.AddDatabase("bench", db.Admin())
	w.observer = postrider.Observers(metrics, spans)
	ctx, w.stop = context.WithCancel(ctx)
	w.work.Go(func() { _ = metrics.Run(ctx) }) // never fails
	w.work.Go(func() { scrape(ctx, metrics.Handler()) })
	return w, nil
}

// scrape reads the metrics each second until ctx ends.
func scrape(ctx context.Context, from http.Handler) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			from.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
		case <-ctx.Done():
			return
		}
	}
}

func (w *watcher) end() error {
	w.stop()
	w.work.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), progressTimeout)
	defer cancel()
	err := w.provider.Shutdown(ctx)
	w.backend.Close()
	w.pool.Close()
	return err
}

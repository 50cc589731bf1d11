package console

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
	"github.com/postrider/postrider/admin/console/internal/guard"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/admin/console/redact"
	"github.com/postrider/postrider/admin/console/web"
)

// Console is the [http.Handler] of the console. It is safe for concurrent use.
type Console struct {
	handler http.Handler
	api     *api.Server
	meter   *live.Meter
}

// New returns a console, or all mistakes of its configuration.
func New(cfg Config) (*Console, error) {
	cfg, wrong := cfg.withDefaults()
	rules, err := redact.New(cfg.Redact)
	if err != nil {
		wrong = append(wrong, err)
	}
	prefix := strings.TrimRight(cfg.Prefix, "/")
	known, err := auth.New(cfg.Access, prefix, cfg.Logger)
	if err != nil {
		wrong = append(wrong, err)
	}
	pages, err := newPages(web.Files(), prefix)
	if err != nil {
		wrong = append(wrong, err)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	var proxies []netip.Prefix
	if cfg.Access.Proxy != nil {
		proxies = cfg.Access.Proxy.From
	}
	c := &Console{meter: new(live.Meter)}
	c.api = api.New(api.Config{
		Databases: cfg.Databases, Relays: cfg.Relays, Payloads: cfg.Access.Payloads, Redact: rules, Proxies: proxies, TraceURL: cfg.TraceURL,
		Version: cfg.Version, Sample: cfg.Sample, Meter: c.meter, Scrub: cfg.Scrub, Logger: cfg.Logger,
	})
	split := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			c.api.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	front := guard.New(guard.Config{Hosts: cfg.Access.Hosts, Prefix: prefix, Proxies: proxies, Rate: cfg.Access.Rate, Logger: cfg.Logger})
	c.handler = front(known.Wrap(below(prefix, split)))
	return c, nil
}

// below serves the paths under a prefix. It redirects the prefix without a slash, under which
// relative addresses would be wrong.
func below(prefix string, next http.Handler) http.Handler {
	if prefix == "" {
		return next
	}
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == prefix {
			http.Redirect(w, r, prefix+"/", http.StatusPermanentRedirect)
			return
		}
		if !strings.HasPrefix(r.URL.Path, prefix+"/") {
			http.NotFound(w, r)
			return
		}
		stripped.ServeHTTP(w, r)
	})
}

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// Run samples the databases until ctx ends, and continues the replays that were started in this
// console. Without Run the console queries databases only for requests. Streams end with ctx, so it
// should end before the server is shut down.
func (c *Console) Run(ctx context.Context) { c.api.Run(ctx) }

// Observer returns an observer that measures the time from enqueue to confirmation. Use it for the
// publishers of the relays in this process: see [broker.ObservePublisher].
func (c *Console) Observer() postrider.Observer { return c.meter }

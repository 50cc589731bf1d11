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

// Console is an [http.Handler]. It is safe for concurrent use.
type Console struct {
	handler http.Handler
	api     *api.Server
	meter   *live.Meter
}

// New returns a console, or everything that is wrong with its configuration.
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

// below serves what lies under a prefix. The prefix alone is led to its own folder, from where relative addresses are right.
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

// Run samples the databases, and carries replays on that were started here, until ctx ends. Without it there are no samples
// but when somebody asks. Whoever watches is let go at its end, so it should end before the server is shut down.
func (c *Console) Run(ctx context.Context) { c.api.Run(ctx) }

// Observer measures the time from enqueue to confirmation, of relays whose publishers it observes: see
// [broker.ObservePublisher].
func (c *Console) Observer() postrider.Observer { return c.meter }

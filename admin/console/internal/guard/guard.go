// Package guard protects the console from requests that its users have not intended: requests that
// another web site makes a browser send, requests for other host names, too many requests, and too
// large ones.
package guard

import (
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Config configures the protection.
type Config struct {
	// Hosts are the host names of the console, such as "postrider.example.com". Loopback addresses
	// and "localhost" are always allowed. Defaults to none.
	Hosts []string
	// Prefix is the URL path of the console. Defaults to "/".
	Prefix string
	// Proxies are the addresses of proxies that are trusted to set the client's address. Defaults
	// to none.
	Proxies []netip.Prefix
	// Rate is the average number of requests per second that one client may make; bursts may be
	// twice as large. Defaults to 50.
	Rate float64
	// Logger logs refused requests and panics. Defaults to [slog.Default].
	Logger *slog.Logger
}

const (
	defaultRate = 50
	maxClients  = 10_000
	maxBody     = 1 << 20
	maxEdit     = 17 << 20 // of a PUT: an edited payload of up to 16 MiB and the rest of the request
)

type guard struct {
	hosts   hosts
	prefix  string
	proxies []netip.Prefix
	limiter *Limiter
	origin  *http.CrossOriginProtection
	log     *slog.Logger
}

// New returns the middleware, which wraps the console including its authentication.
func New(cfg Config) func(http.Handler) http.Handler {
	if cfg.Rate <= 0 {
		cfg.Rate = defaultRate
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	g := &guard{
		hosts:   newHosts(cfg.Hosts),
		prefix:  strings.TrimRight(cfg.Prefix, "/"),
		proxies: cfg.Proxies,
		limiter: NewLimiter(cfg.Rate, math.Max(10, 2*cfg.Rate), maxClients),
		origin:  http.NewCrossOriginProtection(),
		log:     cfg.Logger,
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
	}
}

func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	setHeaders(w.Header(), g.private(r.URL.Path))
	client := Client(r, g.proxies)
	if wait := g.limiter.Take(client, time.Now()); wait > 0 {
		TooMany(w, wait)
		return
	}
	if p, ok := g.refusal(r); !ok {
		g.log.WarnContext(r.Context(), "console: request refused", "status", p.Status, "why", p.Detail, "client", client,
			"method", r.Method, "host", clip(r.Host), "origin", clip(r.Header.Get("Origin")))
		p.Write(w)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(r.Method))
	g.survive(w, r, next)
}

// refusal returns the response to a request that must be refused, or true if the request may pass.
func (g *guard) refusal(r *http.Request) (p Problem, ok bool) {
	if !g.hosts.has(r.Host) {
		return Problem{
			Status: http.StatusMisdirectedRequest,
			Detail: fmt.Sprintf("%q is not a host name of the console.", clip(r.Host)),
			Next:   "If that is its name, add it to the hosts in its configuration.",
		}, false
	}
	if err := g.origin.Check(r); err != nil {
		return Problem{Status: http.StatusForbidden, Detail: "A page of another site has sent this request."}, false
	}
	if safe(r.Method) {
		// The browser does not show the response to the other site, but the request would still
		// cause load on the database.
		site := r.Header.Get("Sec-Fetch-Site")
		if g.isAPI(r.URL.Path) && (site == "cross-site" || site == "same-site") {
			return Problem{Status: http.StatusForbidden, Detail: "A page of another site has sent this request."}, false
		}
		return Problem{}, true
	}
	// Browsers let any site send a form with another content type. For this one they send a
	// preflight request, which fails.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Problem{
			Status: http.StatusUnsupportedMediaType,
			Detail: "Requests that change something have the header Content-Type: application/json, even without a body.",
		}, false
	}
	if limit := bodyLimit(r.Method); r.ContentLength > limit {
		return Problem{
			Status: http.StatusRequestEntityTooLarge,
			Detail: fmt.Sprintf("The request has %d bytes, and %d are allowed.", r.ContentLength, limit),
		}, false
	}
	return Problem{}, true
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func bodyLimit(method string) int64 {
	if method == http.MethodPut {
		return maxEdit
	}
	return maxBody
}

func (g *guard) isAPI(path string) bool { return strings.HasPrefix(path, g.prefix+"/api/") }

// private reports whether responses must not be cached.
func (g *guard) private(path string) bool {
	return g.isAPI(path) || strings.HasPrefix(path, g.prefix+"/auth/")
}

// clip shortens untrusted input for the log.
func clip(s string) string {
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}

// TooMany responds that a client has sent too many requests.
func TooMany(w http.ResponseWriter, wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	Problem{
		Status: http.StatusTooManyRequests,
		Detail: fmt.Sprintf("Too many requests from this address. Try again in %d s.", seconds),
	}.Write(w)
}

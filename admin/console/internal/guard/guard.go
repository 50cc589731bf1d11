// Package guard stands in front of the console. It refuses what none of its users has meant to ask: requests that a web page
// elsewhere makes a browser send, requests for names that are not the console's, too many of them, and too large ones.
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

// Config says what is let through.
type Config struct {
	// Hosts are the names under which the console is reached, such as "postrider.example.com". Loopback addresses and
	// "localhost" always count. Defaults to none others.
	Hosts []string
	// Prefix is the path that the console is mounted at. Defaults to "/".
	Prefix string
	// Proxies are the addresses of proxies that are believed when they say for whom they ask. Defaults to none.
	Proxies []netip.Prefix
	// Rate is how many requests a second one client may make, on average; twice as many at once. Defaults to 50.
	Rate float64
	// Logger is told of refusals and of panics. Defaults to [slog.Default].
	Logger *slog.Logger
}

const (
	defaultRate = 50
	maxClients  = 10_000
	maxBody     = 1 << 20
	maxEdit     = 17 << 20 // of a PUT, which carries an edited payload of up to 16 MiB, and what goes with it
)

type guard struct {
	hosts   hosts
	prefix  string
	proxies []netip.Prefix
	limiter *Limiter
	origin  *http.CrossOriginProtection
	log     *slog.Logger
}

// New returns what to wrap around the handler of the console, and around who finds out whom it serves.
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

// refusal says why a request is not let through, if it is not.
func (g *guard) refusal(r *http.Request) (p Problem, ok bool) {
	if !g.hosts.has(r.Host) {
		return Problem{
			Status: http.StatusMisdirectedRequest,
			Detail: fmt.Sprintf("The console is not known as %q.", clip(r.Host)),
			Next:   "If that is its name, add it to the hosts in its configuration.",
		}, false
	}
	if err := g.origin.Check(r); err != nil {
		return Problem{Status: http.StatusForbidden, Detail: "A page of another site has sent this request."}, false
	}
	if safe(r.Method) {
		// Reading does no harm, and the browser keeps the answer from the other page. But it costs the database work.
		site := r.Header.Get("Sec-Fetch-Site")
		if g.isAPI(r.URL.Path) && (site == "cross-site" || site == "same-site") {
			return Problem{Status: http.StatusForbidden, Detail: "A page of another site has sent this request."}, false
		}
		return Problem{}, true
	}
	// Forms can send other types from anywhere; for this one a browser asks first, and is told no.
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

// private says that answers are not to be kept by anybody.
func (g *guard) private(path string) bool {
	return g.isAPI(path) || strings.HasPrefix(path, g.prefix+"/auth/")
}

// clip shortens what a stranger has sent, for the log.
func clip(s string) string {
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}

// TooMany answers that a client has asked too often.
func TooMany(w http.ResponseWriter, wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	Problem{
		Status: http.StatusTooManyRequests,
		Detail: fmt.Sprintf("Too many requests from this address. Ask again in %d s.", seconds),
	}.Write(w)
}

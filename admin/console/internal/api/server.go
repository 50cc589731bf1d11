// Package api implements the console's JSON API, with an OpenAPI document that it serves. The table
// of routes alone decides which role may do what.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/admin/console/internal/source"
	"github.com/postrider/postrider/admin/console/redact"
)

// Config configures a [Server]. There are no defaults.
type Config struct {
	Databases []source.Database
	Relays    func() []source.Relay // of this process
	Payloads  auth.Role             // the lowest role that may see payloads
	Redact    *redact.Rules
	Proxies   []netip.Prefix // trusted to set the client's address
	TraceURL  string
	Version   string
	Sample    time.Duration
	Meter     *live.Meter
	Scrub     func(string) string // removes secrets from a text
	Logger    *slog.Logger
}

// Server serves the API, at paths that begin with "/api/". It is safe for concurrent use.
type Server struct {
	cfg       Config
	databases []*database
	hub       *live.Hub
	work      *work
	mux       *http.ServeMux
	document  *huma.OpenAPI
}

const (
	mostWatchers = 64
	ofOneClient  = 8
)

// New returns a server.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, hub: live.NewHub(mostWatchers, ofOneClient), work: newWork(), mux: http.NewServeMux()}
	for i := range cfg.Databases {
		s.databases = append(s.databases, s.open(&cfg.Databases[i]))
		s.databases[i].oneOfMany = len(cfg.Databases) > 1
	}
	s.routes()
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Run samples the databases and runs background work until ctx ends. It returns when all of it has
// stopped.
func (s *Server) Run(ctx context.Context) {
	for _, d := range s.databases {
		if d.watch != nil {
			s.work.start(d.watch.Run)
		}
	}
	s.work.run(ctx)
}

// OpenAPI returns the description of the API.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.document }

func (s *Server) scrub(text string) string { return s.cfg.Scrub(text) }

func (s *Server) routes() {
	cfg := huma.DefaultConfig("Postrider console", "1")
	cfg.OpenAPI.Info.Description = "The API of the console. Every request takes db, the name of a database; " +
		"the default is the first one. Errors are application/problem+json."
	cfg.OpenAPI.Servers = []*huma.Server{{URL: "/api/v1", Description: "below the path of the console"}}
	cfg.OpenAPIPath, cfg.DocsPath, cfg.SchemasPath, cfg.CreateHooks = "", "", "", nil
	cfg.Transformers = []huma.Transformer{worded}
	api := humago.NewWithPrefix(s.mux, "/api/v1", cfg)
	for _, r := range table {
		r.register(s, api, s.operation(api, r))
	}
	s.document = api.OpenAPI()
	tidy(s.document)
	s.serveDocument()
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		write(w, absent("the API has no %s %s", r.Method, r.URL.Path))
	})
}

// database is a database of the console.
type database struct {
	*source.Database
	oneOfMany bool        // commands must name it
	watch     *live.Watch // nil without gauges
	health    kept[DatabaseHealth]
	doctor    kept[Checkup]
	slow      kept[[]Problem]
	readings  readings
}

func (d *database) name() string {
	if d == nil {
		return ""
	}
	return d.Name
}

func (s *Server) open(from *source.Database) *database {
	d := &database{Database: from, health: newKept[DatabaseHealth](30 * time.Second), doctor: newKept[Checkup](10 * time.Second),
		slow: newKept[[]Problem](15 * time.Second)}
	if d.Gauges != nil {
		d.watch = live.NewWatch(live.Config{
			Gauges: d.Gauges, Relays: func() []source.Relay { return s.relaysOf(d.Name) }, Meter: s.cfg.Meter, Hub: s.hub,
			Every: s.cfg.Sample, Logger: s.cfg.Logger.With("database", d.Name),
			Report: func(ctx context.Context, l *live.Look) (unchanging, whole any) {
				o := s.overviewOf(ctx, d, l)
				still := *o
				still.At = time.Time{}
				return still, o
			},
		})
	}
	return d
}

func (s *Server) relaysOf(db string) []source.Relay {
	if s.cfg.Relays == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.cfg.Relays()), func(r source.Relay) bool { return r.Database != db })
}

// DB is the parameter of every request.
type DB struct {
	DB string `query:"db" doc:"name of the database; the first one without it"`
}

func (in *DB) named() string { return in.DB }

func (s *Server) database(name string) (*database, error) {
	if name == "" {
		return s.databases[0], nil
	}
	for _, d := range s.databases {
		if d.Name == name {
			return d, nil
		}
	}
	return nil, absent("there is no database %q", name)
}

// has returns a part of a database, or a failure if the database does not have it.
func has[T comparable](part T, what string) (T, error) {
	var none T
	if part == none {
		return none, absent("this database has no %s", what)
	}
	return part, nil
}

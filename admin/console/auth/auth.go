package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/postrider/postrider/admin/console/internal/guard"
)

// Auth authenticates requests.
type Auth struct {
	cfg      Config
	prefix   string // without a trailing slash
	home     string // the host in the OIDC redirect URL, if that uses TLS
	log      *slog.Logger
	now      func() time.Time
	tokens   []knownToken
	wrong    *guard.Limiter
	sessions seal
	flows    seal
	ended    used // IDs of ended sessions
	begun    used // states of finished flows
	requests requests
	provider *provider
}

// New returns an Auth for a console that is mounted at prefix. The OIDC provider need not be reachable yet.
func New(cfg Config, prefix string, log *slog.Logger) (*Auth, error) {
	if err := errors.Join(cfg.problems()...); err != nil {
		return nil, err
	}
	if strings.ContainsAny(prefix, "{} ?#%") || prefix != "" && prefix[0] != '/' {
		return nil, fmt.Errorf("auth: prefix %q: want a path, such as /postrider", prefix)
	}
	if log == nil {
		log = slog.Default()
	}
	if cfg.Session == 0 {
		cfg.Session = 8 * time.Hour
	}
	a := &Auth{
		cfg: cfg, prefix: strings.TrimRight(prefix, "/"), log: log, now: time.Now,
		tokens: knowTokens(cfg.Tokens),
		wrong:  guard.NewLimiter(guesses/60.0, guesses, 10_000),
		begun:  used{most: 100_000}, // bounded, because anybody can begin a flow
	}
	key := cfg.SessionKey
	if len(key) == 0 {
		key = make([]byte, minKey)
		_, _ = rand.Read(key) // never fails
	}
	var err error
	if a.sessions, err = newSeal(key, "session"); err != nil {
		return nil, err
	}
	if a.flows, err = newSeal(key, "flow"); err != nil {
		return nil, err
	}
	if cfg.OIDC != nil {
		u, err := url.Parse(cfg.OIDC.RedirectURL)
		if err != nil || u.Path != a.prefix+"/auth/callback" {
			return nil, fmt.Errorf("auth: OIDC: redirect URL %q: the console is mounted at %q, so its path is %q",
				cfg.OIDC.RedirectURL, a.prefix+"/", a.prefix+"/auth/callback")
		}
		if u.Scheme == "https" {
			a.home = u.Host
		}
		a.provider = newProvider(*cfg.OIDC, log)
	}
	return a, nil
}

// Wrap returns a handler that serves paths below <prefix>/auth/ itself, and adds the identity to
// the context of all other requests. It refuses unauthenticated requests to the API. It serves the
// pages to everybody: they contain no data, and ask users to sign in.
func (a *Auth) Wrap(next http.Handler) http.Handler {
	own := a.routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, a.prefix+"/auth/") {
			own.ServeHTTP(w, r)
			return
		}
		who, s, no := a.identify(w, r)
		if no != nil {
			if needsIdentity(r) {
				no.write(w)
			} else {
				next.ServeHTTP(w, r)
			}
			return
		}
		r = r.WithContext(With(r.Context(), who))
		if s == nil {
			next.ServeHTTP(w, r)
			return
		}
		a.during(*s, w, r, next)
	})
}

// during serves a request of a session, and cancels it when the session ends.
func (a *Auth) during(s session, w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := context.WithTimeout(r.Context(), s.ends(a.cfg.Session).Sub(a.now()))
	defer cancel()
	defer a.requests.enter(s.ID, cancel)()
	if a.ended.has(s.ID) { // the session has ended meanwhile
		unknown.write(w)
		return
	}
	next.ServeHTTP(w, r.WithContext(ctx))
}

// needsIdentity reports whether a request is for anything but a page.
func needsIdentity(r *http.Request) bool {
	page := r.Method == http.MethodGet || r.Method == http.MethodHead
	return !page || strings.Contains(r.URL.Path+"/", "/api/")
}

func (a *Auth) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+a.prefix+"/auth/methods", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]bool{"token": len(a.tokens) > 0, "oidc": a.provider != nil})
	})
	mux.HandleFunc("POST "+a.prefix+"/auth/logout", func(w http.ResponseWriter, r *http.Request) {
		a.end(w, r)
		w.WriteHeader(http.StatusNoContent)
	})
	if len(a.tokens) > 0 {
		mux.HandleFunc("POST "+a.prefix+"/auth/session", a.signIn)
	}
	mux.HandleFunc(a.prefix+"/auth/", func(w http.ResponseWriter, _ *http.Request) {
		guard.Problem{Status: http.StatusNotFound, Detail: "There is no such way to sign in here."}.Write(w)
	})
	if a.provider != nil {
		mux.HandleFunc("GET "+a.prefix+"/auth/login", a.login)
		mux.HandleFunc("GET "+a.prefix+"/auth/callback", a.callback)
	}
	return mux
}

// refusal is the response to an unauthenticated request.
type refusal struct {
	problem guard.Problem
	wait    time.Duration
}

func (no *refusal) write(w http.ResponseWriter) {
	if no.wait > 0 {
		guard.TooMany(w, no.wait)
		return
	}
	if no.problem.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="postrider"`)
	}
	no.problem.Write(w)
}

// identify returns the identity of the request, and its session if there is one.
func (a *Auth) identify(w http.ResponseWriter, r *http.Request) (Identity, *session, *refusal) {
	if who, no, ok := a.byProxy(r); ok {
		return who, nil, no
	}
	if secret, ok := bearer(r); ok && len(a.tokens) > 0 {
		t, no := a.byToken(r, secret)
		return t.who, nil, no
	}
	if !a.cfg.known() {
		return byMachine(r)
	}
	if s, ok := a.current(w, r); ok {
		return s.identity(), &s, nil
	}
	return Identity{}, nil, unknown
}

var unknown = &refusal{problem: guard.Problem{
	Status: http.StatusUnauthorized,
	Detail: "You are not signed in, or have been signed out.",
	Next:   "Sign in, or send the header Authorization: Bearer with a token.",
}}

// byMachine gives everybody on this machine the role admin. It checks the addresses of each
// request, because the handler may be mounted in a server that other machines can reach.
func byMachine(r *http.Request) (Identity, *session, *refusal) {
	_, socket := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	near := socket || guard.Peer(r).IsLoopback()
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		near = near && r.Header.Get(name) == ""
	}
	if !near {
		return Identity{}, nil, &refusal{problem: guard.Problem{
			Status: http.StatusUnauthorized,
			Detail: "The console does not know you: it has no tokens, OIDC or proxy, and serves this machine only.",
			Next:   "Configure one of them.",
		}}
	}
	return Identity{Name: "local", Role: Admin, Via: "local"}, nil, nil
}

// granted reports whether the token or provider that granted the session is still configured. It
// updates the session's role.
func (a *Auth) granted(s *session) bool {
	switch s.Via {
	case "token":
		for _, t := range a.tokens {
			if t.grant == s.Grant {
				s.Name, s.Role = t.who.Name, t.who.Role
				return true
			}
		}
	case "oidc":
		return a.provider != nil && a.provider.grant == s.Grant && rank(s.Role) > 0
	}
	return false
}

// tidy makes a name safe for the audit log: on one line, and without invisible characters.
func tidy(name string) string {
	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(name, ""))
	if len(name) > 200 {
		name = strings.ToValidUTF8(name[:200], "")
	}
	return strings.TrimSpace(name)
}

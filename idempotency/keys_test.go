package idempotency_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/memory"
)

// shop is an API on a store in memory.
type shop struct {
	t     *testing.T
	store *memory.DB
	keys  *idempotency.Keys[*memory.Tx]
	mux   *http.ServeMux
	runs  counter // how often a handler was called
	done  counter // how many effects were committed
}

type counter struct{ n atomic.Int32 }

func (c *counter) add() { c.n.Add(1) }

func (c *counter) now() int { return int(c.n.Load()) }

func open(t *testing.T, change ...func(*idempotency.Config)) *shop {
	t.Helper()
	s := &shop{t: t, store: memory.Open(memory.Config{}), mux: http.NewServeMux()}
	s.wire(s.store.IdempotencyKeys(), change...)
	return s
}

func (s *shop) wire(store idempotency.Store[*memory.Tx], change ...func(*idempotency.Config)) {
	s.t.Helper()
	cfg := idempotency.Config{Scope: scope, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if s.keys, err = idempotency.New(store, cfg); err != nil {
		s.t.Fatal(err)
	}
}

// scope trusts two header fields. Do not do that outside of tests.
func scope(r *http.Request) (idempotency.Scope, error) {
	if r.Header.Get("User") == "nobody" {
		return idempotency.Scope{}, &idempotency.Problem{Status: http.StatusUnauthorized, Title: "Who are you?"}
	}
	return idempotency.Scope{Tenant: r.Header.Get("Tenant"), Principal: r.Header.Get("User")}, nil
}

// effect counts an effect if and only if the transaction commits.
func (s *shop) effect(ctx context.Context) {
	s.t.Helper()
	if !postrider.AfterCommit(ctx, func() { s.done.add() }) {
		s.t.Error("not in a transaction")
	}
}

// plain serves pattern behind the middleware.
func (s *shop) plain(pattern string, f http.HandlerFunc) {
	s.mux.Handle(pattern, s.keys.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.add()
		f(w, r)
	})))
}

// whole serves pattern in one transaction.
func (s *shop) whole(pattern string, f idempotency.Handler[*memory.Tx]) {
	s.mux.Handle(pattern, s.keys.Handle(s.store, func(ctx context.Context, tx *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		s.runs.add()
		return f(ctx, tx, r)
	}))
}

// ask returns a request of user ann with the key k. Fields are pairs of names and values; an empty
// value removes the field.
func ask(target, body string, fields ...string) *http.Request {
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("User", "ann")
	r.Header.Set("Idempotency-Key", `"k"`)
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] == "" {
			r.Header.Del(fields[i])
		} else {
			r.Header.Set(fields[i], fields[i+1])
		}
	}
	return r
}

func (s *shop) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w
}

// want sends a request and checks the status, and the numbers of calls and effects so far.
func (s *shop) want(r *http.Request, status, runs, done int) *httptest.ResponseRecorder {
	s.t.Helper()
	w := s.do(r)
	if w.Code != status || s.runs.now() != runs || s.done.now() != done {
		s.t.Errorf("%s %s: status %d, %d runs, %d effects; want %d, %d, %d\n%s", r.Method, r.URL, w.Code, s.runs.now(), s.done.now(), status, runs, done, w.Body)
	}
	if status >= 400 && w.Header().Get("Content-Type") != "application/problem+json" && strings.Contains(w.Body.String(), `"type"`) {
		s.t.Errorf("content type %q", w.Header().Get("Content-Type"))
	}
	return w
}

func TestConfig(t *testing.T) {
	_, err := idempotency.New(memory.Open(memory.Config{}).IdempotencyKeys(), idempotency.Config{
		Lease: time.Hour, Retention: time.Minute, MaxKey: 256, MaxAnswer: -1, Headers: []string{"ETag", "set-cookie"},
	})
	for _, want := range []string{"Scope is not set", "Retention is 1m0s and Lease 1h0m0s", "MaxKey is 256", "MaxAnswer -1", "Set-Cookie"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "Etag") {
		t.Error(err)
	}
}

// TestRefused covers requests that do not reach the handler, and requests without a key that do.
func TestRefused(t *testing.T) {
	required := func(c *idempotency.Config) { c.Required = true }
	public := func(c *idempotency.Config) { c.Scope = idempotency.Public }
	small := func(c *idempotency.Config) { c.MaxBody = 3; c.MaxKey = 20 }
	two := ask("POST /", "")
	two.Header.Add("Idempotency-Key", "another")
	chunked := ask("POST /", "1234")
	chunked.ContentLength = -1
	for _, test := range []struct {
		name    string
		config  func(*idempotency.Config)
		request *http.Request
		status  int
		runs    int
	}{
		{"missing, required", required, ask("POST /", "", "Idempotency-Key", ""), 400, 0},
		{"missing, not required", nil, ask("POST /", "", "Idempotency-Key", ""), 200, 1},
		{"safe methods need none", required, ask("GET /", "", "Idempotency-Key", ""), 200, 1},
		{"HEAD", required, ask("HEAD /", "", "Idempotency-Key", ""), 200, 1},
		{"two keys", nil, two, 400, 0},
		{"no string", nil, ask("POST /", "", "Idempotency-Key", `"a`), 400, 0},
		{"too long", small, ask("POST /", "", "Idempotency-Key", strings.Repeat("k", 21)), 400, 0},
		{"just fits", small, ask("POST /", "123", "Idempotency-Key", strings.Repeat("k", 20)), 200, 1},
		{"large", small, ask("POST /", "1234"), 413, 0},
		{"large and chunked", small, chunked, 413, 0},
		{"refused by Scope", nil, ask("POST /", "", "User", "nobody"), 401, 0},
		{"no principal", nil, ask("POST /", "", "User", ""), 500, 0},
		{"principal is no text", nil, ask("POST /", "", "User", "a\xff"), 500, 0},
		{"short key for everybody", public, ask("POST /", "", "User", ""), 400, 0},
		{"long key for everybody", public, ask("POST /", "", "User", "", "Idempotency-Key", "8e03978e-40d5-43e8"), 200, 1},
		{"PUT with a key", nil, ask("PUT /", ""), 200, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, func(c *idempotency.Config) {
				c.Docs = "https://example.com/keys"
				if test.config != nil {
					test.config(c)
				}
			})
			s.plain("/", func(http.ResponseWriter, *http.Request) {})
			w := s.want(test.request, test.status, test.runs, 0)
			if known := test.status != 401 && test.status != 200; known && !strings.Contains(w.Body.String(), `"type":"https://example.com/keys"`) {
				t.Error(w.Body)
			}
		})
	}
}

// TestCrossUser sends the same request with the same key as every user and to every operation.
func TestCrossUser(t *testing.T) {
	s := open(t)
	answer := func(r *http.Request) string {
		return r.Header.Get("Tenant") + "|" + r.Header.Get("User") + "|" + r.Pattern
	}
	for _, pattern := range []string{"POST /a", "PUT /a", "POST /b"} {
		s.plain(pattern, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer(r)) })
	}
	s.whole("POST /c/{id}", func(_ context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		return idempotency.Answer{Body: []byte(answer(r))}, nil
	})
	runs := 0
	for round := range 2 {
		for _, tenant := range []string{"-", "a", "ab", "A"} {
			for _, user := range []string{"ann", "bob", "b", "ab", "ann "} {
				for _, target := range []string{"POST /a", "PUT /a", "POST /b", "POST /c/1"} {
					r := ask(target, "body", "User", user, "Tenant", tenant)
					if round == 0 {
						runs++
					}
					w := s.want(r, 200, runs, 0)
					if want := answer(r); w.Body.String() != want {
						t.Errorf("%q got the answer %q", want, w.Body)
					}
					if replayed := w.Header().Get("Idempotency-Replayed") == "true"; replayed != (round == 1) {
						t.Errorf("replayed: %v in round %d", replayed, round)
					}
				}
			}
		}
	}
}

// failing is a store with faults.
type failing struct {
	idempotency.Store[*memory.Tx]
	claim, save, release int // how many calls fail
}

var errDown = errors.New("the database is down")

func (f *failing) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if f.claim--; f.claim >= 0 {
		return idempotency.Outcome{}, errDown
	}
	return f.Store.Claim(ctx, c)
}

func (f *failing) ClaimIn(ctx context.Context, tx *memory.Tx, c idempotency.Claim) (idempotency.Outcome, error) {
	if f.claim--; f.claim >= 0 {
		return idempotency.Outcome{}, errDown
	}
	return f.Store.ClaimIn(ctx, tx, c)
}

func (f *failing) Save(ctx context.Context, c idempotency.Claim, a idempotency.Answer) error {
	if f.save--; f.save >= 0 {
		return errDown
	}
	return f.Store.Save(ctx, c, a)
}

func (f *failing) Release(ctx context.Context, c idempotency.Claim) error {
	if f.release--; f.release >= 0 {
		return errDown
	}
	return f.Store.Release(ctx, c)
}

// TestNobodyIsNoPrincipal checks that a tenant does not replace a principal: otherwise all users of
// a tenant would share keys, and one could get another's answer.
func TestNobodyIsNoPrincipal(t *testing.T) {
	s := open(t)
	s.plain("POST /orders", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Caller")) })
	for _, caller := range []string{"ann", "bob"} {
		w := s.want(ask("POST /orders", "1", "User", "", "Tenant", "acme", "Caller", caller), http.StatusInternalServerError, 0, 0)
		if strings.Contains(w.Body.String(), caller) {
			t.Errorf("got %q", w.Body)
		}
	}
	s.want(ask("POST /orders", "1", "Tenant", "acme"), 200, 1, 0)
	s.want(ask("POST /orders", "1", "Tenant", "globex"), 200, 2, 0)
	s.want(ask("POST /orders", "1"), 200, 3, 0)
}

// TestLongRoutes checks that routes that are too long for a store stay different, so that their
// answers are not mixed up.
func TestLongRoutes(t *testing.T) {
	common := strings.Repeat("/part", 200)
	for name, routes := range map[string][]string{
		"long":      {common + "/a", common + "/b", common},
		"not UTF-8": {"\xff", "\xfe", "\uFFFD", "\x00"},
		"both":      {common + "\xff", common + "\xfe"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(c *idempotency.Config) {
				c.Route = func(r *http.Request) string {
					n, _ := strconv.Atoi(r.Header.Get("Route"))
					return routes[n]
				}
			})
			s.plain("POST /", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Route")) })
			for range 2 {
				for i := range routes {
					w := s.do(ask("POST /", "1", "Route", strconv.Itoa(i)))
					if w.Code != 200 || w.Body.String() != strconv.Itoa(i) {
						t.Errorf("route %d: %d %q", i, w.Code, w.Body)
					}
				}
			}
			if s.runs.now() != len(routes) {
				t.Errorf("%d runs, want one for each of %d routes", s.runs.now(), len(routes))
			}
		})
	}
}

// routes is a store that notes the routes of claims.
type routes struct {
	idempotency.Store[*memory.Tx]
	claimed []string
}

func (r *routes) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	r.claimed = append(r.claimed, c.ID.Route)
	return r.Store.Claim(ctx, c)
}

// TestRouteLength: a store gets the route itself, unless that is longer than 512 bytes.
func TestRouteLength(t *testing.T) {
	for _, n := range []int{20, 512, 513, 5000} {
		s := open(t)
		store := &routes{Store: s.store.IdempotencyKeys()}
		route := strings.Repeat("r", n)
		s.wire(store, func(c *idempotency.Config) { c.Route = func(*http.Request) string { return route } })
		s.plain("POST /", func(http.ResponseWriter, *http.Request) {})
		s.want(ask("POST /", "1"), 200, 1, 0)
		if got := store.claimed[0]; len(got) > 512 || (got == route) != (n <= 512) {
			t.Errorf("%d bytes: the store gets %d", n, len(got))
		}
	}
}

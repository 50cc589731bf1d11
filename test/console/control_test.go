package console

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"syscall"
	"testing"

	"github.com/postrider/postrider"
)

// healed lists the faults that have been repaired.
type healed struct {
	mu  sync.Mutex
	set map[string]bool
}

func (h *healed) is(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.set[what]
}

func (h *healed) heal(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.set == nil {
		h.set = map[string]bool{}
	}
	h.set[what] = true
}

// control lets browser tests change the scene: repair a fault, send a message, take orders without
// a bill, and kill or start a process.
func (s *shop) control(t *testing.T, second *process) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /heal/{what}", func(_ http.ResponseWriter, r *http.Request) { s.healed.heal(r.PathValue("what")) })
	mux.HandleFunc("POST /send/{id}", func(w http.ResponseWriter, r *http.Request) {
		m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: r.PathValue("id")}, map[string]any{"order": r.PathValue("id")})
		if err := s.send(s.db, m); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(m.ID.String()))
	})
	mux.HandleFunc("POST /received/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, ok := s.partner.received.Load(r.PathValue("id"))
		if !ok {
			http.Error(w, "the partner has not received it", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, body.(string))
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		_, err := s.db.pool.Exec(r.Context(), "INSERT INTO orders SELECT 'CH-' || n, n * 1000, false, now() - interval '1 minute' FROM generate_series(1, 4) n")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /kill", func(http.ResponseWriter, *http.Request) { second.kill(syscall.SIGKILL) })
	mux.HandleFunc("POST /start", func(w http.ResponseWriter, _ *http.Request) {
		if err := second.launch(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// proxied returns the address of a proxy in front of a console. It leaves paths and names
// unchanged.
func proxied(t *testing.T, to string) string {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: to}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.SetXForwarded()
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1, // the live figures are a stream
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if context.Cause(r.Context()) == nil {
				w.WriteHeader(http.StatusBadGateway)
			}
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

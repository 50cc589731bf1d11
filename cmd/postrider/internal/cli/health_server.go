package cli

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
)

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		err := h.live()
		text := "ok"
		if err != nil {
			text = err.Error()
		}
		answer(w, "text/plain; charset=utf-8", err == nil, []byte(text+"\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		feeds, ready := h.ready()
		if !r.URL.Query().Has("verbose") {
			text := map[bool]string{true: "ok\n", false: "not ready\n"}[ready]
			answer(w, "text/plain; charset=utf-8", ready, []byte(text))
			return
		}
		body, err := json.MarshalIndent(readiness{feeds, ready, h.ctx.Err() != nil}, "", "  ")
		answer(w, "application/json", ready && err == nil, append(body, '\n'))
	})
	if h.metrics != nil {
		mux.Handle("GET /metrics", h.metrics)
	}
	return h.guard(mux)
}

func answer(w http.ResponseWriter, kind string, good bool, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body) // the client may have disconnected
}

// guard requires the bearer token, if there is one.
func (h *health) guard(next http.Handler) http.Handler {
	if h.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(h.Token)) // equal lengths, for a comparison in constant time
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized: want the bearer token of health.token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

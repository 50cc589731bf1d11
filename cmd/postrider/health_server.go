package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

const healthStop = 2 * time.Second // how long a stop waits for answers under way

// listen answers until the returned function is called.
func (h *health) listen(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", h.Listen)
	if err != nil {
		return nil, fmt.Errorf("health: %w", err)
	}
	server := &http.Server{
		Handler:           h.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	log.Info("relay: health", "listen", l.Addr().String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("relay: nobody can ask for health any more", "err", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthStop)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // whoever still listens is cut off
		}
		<-ended
	}, nil
}

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
		body, err := json.MarshalIndent(map[string]any{"ready": ready, "stopping": h.ctx.Err() != nil, "feeds": feeds}, "", "  ")
		answer(w, "application/json", ready && err == nil, append(body, '\n'))
	})
	return h.guard(mux)
}

func answer(w http.ResponseWriter, kind string, good bool, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(body) // whoever has asked may be gone
}

// guard lets only those pass who know the token, if there is one.
func (h *health) guard(next http.Handler) http.Handler {
	if h.Token == "" {
		return next
	}
	want := sha256.Sum256([]byte(h.Token)) // of equal length, so that comparing takes the same time for all
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "who are you? want the bearer token of health.token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const answerStop = 2 * time.Second // how long a stop waits for answers under way

// httpListener answers requests of one kind. Write is the longest that an answer may take; 0 is no limit.
type httpListener struct {
	what   string
	listen string
	write  time.Duration
	http.Handler
	certificate *certificate // nil: plain HTTP
}

// start answers until the returned function is called.
func (h httpListener) start(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", h.listen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.what, err)
	}
	running, cut := context.WithCancel(context.WithoutCancel(ctx)) // of requests: those that stream end with it
	server := &http.Server{
		Handler:           h.Handler,
		BaseContext:       func(net.Listener) context.Context { return running },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      h.write,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	serve := server.Serve
	if h.certificate != nil {
		if _, err := h.certificate.get(nil); err != nil {
			cut()
			return nil, errors.Join(fmt.Errorf("%s: %w", h.what, err), l.Close())
		}
		server.TLSConfig = &tls.Config{GetCertificate: h.certificate.get} //nolint:gosec // the least version is the library's
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	log.Info("relay: "+h.what, "listen", l.Addr().String()) //nolint:sloglint // one of few texts
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("relay: the HTTP server stopped", "what", h.what, "err", err)
		}
	}()
	return func() {
		cut()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerStop)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // whoever still listens is cut off
		}
		<-ended
	}, nil
}

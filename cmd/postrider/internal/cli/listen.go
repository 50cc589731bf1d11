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

const answerStop = 2 * time.Second // how long a stop waits for requests in progress

// httpListener serves a handler. A response may take at most write; 0 is no limit.
type httpListener struct {
	what   string
	listen string
	write  time.Duration
	http.Handler
	certificate *certificate // nil: plain HTTP
}

// start serves until the returned function is called.
func (h httpListener) start(ctx context.Context, log *slog.Logger) (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", h.listen)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.what, err)
	}
	running, cut := context.WithCancel(context.WithoutCancel(ctx)) // the context of requests: its end stops streaming responses
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
		server.TLSConfig = &tls.Config{GetCertificate: h.certificate.get} //nolint:gosec // use the default minimum version of crypto/tls
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
			_ = server.Close() // disconnect the remaining clients
		}
		<-ended
	}, nil
}

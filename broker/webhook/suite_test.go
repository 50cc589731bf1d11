package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/webhook"
	"github.com/postrider/postrider/internal/port"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var (
	_ broker.OrderKeeper = (*webhook.Publisher)(nil)
	_ broker.Inspector   = (*webhook.Publisher)(nil)
	_ broker.Namer       = (*webhook.Publisher)(nil)
)

// endpoint is a server that stores messages before it confirms them, as an endpoint should.
type endpoint struct {
	address string
	http2   bool
	store   *memory.Broker
	handler http.Handler
	server  *httptest.Server
	names   sync.Map // name → status to answer; http.StatusOK stands for the receiver's own answer
}

func newEndpoint(t *testing.T, http2 bool) *endpoint {
	e := &endpoint{http2: http2, store: memory.New(), address: port.For(t)}
	cfg := webhook.Config{Secrets: []string{secret}, MaxBody: 4 << 20}
	receiver, err := webhook.NewReceiver(cfg, func(ctx context.Context, m postrider.Message) error {
		if errs := e.store.Publish(ctx, []postrider.Message{m}); errs != nil {
			return errs[0]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/hooks/{name}", func(w http.ResponseWriter, r *http.Request) {
		answer, _ := e.names.Load(r.PathValue("name"))
		switch status, known := answer.(int); {
		case !known:
			w.WriteHeader(http.StatusNotFound)
		case status != http.StatusOK:
			w.WriteHeader(status)
		default:
			receiver.ServeHTTP(w, r)
		}
	})
	e.handler = mux
	e.start(t)
	t.Cleanup(func() {
		e.server.CloseClientConnections()
		e.server.Close()
	})
	return e
}

func (e *endpoint) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", e.address)
	if err != nil {
		t.Fatal(err)
	}
	e.server = httptest.NewUnstartedServer(e.handler)
	_ = e.server.Listener.Close()
	e.server.Listener = l
	e.server.EnableHTTP2 = e.http2
	e.server.Config.ErrorLog = log.New(io.Discard, "", 0) // some tests break handshakes on purpose
	e.server.StartTLS()
}

func (e *endpoint) restart(t *testing.T) {
	e.server.Listener.Close()
	e.server.CloseClientConnections()
	e.server.Close()
	e.start(t)
}

func (e *endpoint) publisher(t *testing.T, address string) postrider.Publisher {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(e.server.Certificate())
	p, err := webhook.NewPublisher(webhook.Config{
		URL:           "https://" + address + "/hooks/{name}",
		Secrets:       []string{secret},
		AllowLoopback: true,
		MaxBody:       1<<20 - 1,
		TLS:           &tls.Config{RootCAs: roots},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// answering makes a name to which the endpoint always gives one answer.
func (e *endpoint) answering(status int) brokertest.Fault {
	return func(*testing.T) (string, func()) {
		name := "bad " + postrider.NewID().String()
		e.names.Store(name, status)
		return name, func() { e.names.Store(name, http.StatusOK) }
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			brokertest.Run(t, func(t *testing.T) brokertest.Harness {
				e := newEndpoint(t, http2)
				return brokertest.Harness{
					Server: e.address,
					Create: func(t *testing.T) string {
						name := "name of " + postrider.NewID().String()
						e.names.Store(name, http.StatusOK)
						return name
					},
					Publisher: e.publisher,
					Consumer: func(_ *testing.T, name, group string, limit int) postrider.Consumer {
						return e.store.Consumer(name, group, limit)
					},
					Missing:   e.answering(http.StatusNotFound),
					Forbidden: e.answering(http.StatusForbidden),
					Full:      e.answering(http.StatusTooManyRequests),
					Restart:   e.restart,
					Abilities: brokertest.Abilities{
						SignedIDs:   true,
						NamesByType: true,
						MaxPayload:  1 << 20, NoName: "..", OneLineHeaders: true, FoldsHeaderNames: true,
						OneAtATime: true,
					},
				}
			})
		})
	}
}

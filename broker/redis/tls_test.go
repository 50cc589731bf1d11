package redis_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis"
	"github.com/postrider/postrider/internal/need"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	c := connect(t)
	name := stream(t, c)
	address, authorities := encrypted(t)

	p := open(t, redis.Config{URL: "rediss://" + address, TLS: &tls.Config{RootCAs: authorities}})
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "a", "0")}); errs != nil {
		t.Error(errs)
	}
	p = open(t, redis.Config{URL: "rediss://" + address})
	errs := p.Publish(t.Context(), []postrider.Message{event(name, "a", "1")})
	expect(t, errs, postrider.ScopeDestination)
	if errs[0] != nil && !strings.Contains(errs[0].Error(), "certificate") {
		t.Errorf("got %v, want what is wrong with the certificate", errs[0])
	}
	if _, err := redis.NewPublisher(redis.Config{URL: "redis://" + address, TLS: &tls.Config{}}); err == nil {
		t.Error("certificates without encryption were accepted")
	}
}

// encrypted starts a TLS proxy for the server.
func encrypted(t *testing.T) (address string, authorities *x509.CertPool) {
	t.Helper()
	u, err := url.Parse(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	authorities = x509.NewCertPool()
	authorities.AddCert(certified.Certificate())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	var run sync.WaitGroup
	t.Cleanup(run.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	run.Go(func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", u.Host)
			if err != nil {
				_ = front.Close()
				continue
			}
			run.Go(func() { _, _ = io.Copy(front, back); _ = front.Close() })
			run.Go(func() { _, _ = io.Copy(back, front); _ = back.Close() })
		}
	})
	return listener.Addr().String(), authorities
}

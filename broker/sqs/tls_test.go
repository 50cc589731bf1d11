package sqs

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

var (
	fronts   = make(map[string]*httptest.Server)
	frontsMu sync.Mutex
)

// front returns a TLS server with persistent connections in front of a local server without either.
// Amazon has both, and only with TLS can a client know that nothing was sent on a connection that
// breaks at once.
func front(endpoint string) *httptest.Server {
	frontsMu.Lock()
	defer frontsMu.Unlock()
	if fronts[endpoint] == nil {
		target, err := url.Parse(endpoint)
		if err != nil {
			panic(err)
		}
		fronts[endpoint] = httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(target))
	}
	return fronts[endpoint]
}

// openSecured opens a publisher that connects to a front through an address.
func openSecured(t testing.TB, f *httptest.Server, address string, cfg Config) *Publisher {
	t.Helper()
	trust := f.Client().Transport.(*http.Transport).TLSClientConfig
	cfg.AWS = local()
	cfg.AWS.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) { tr.TLSClientConfig = trust.Clone() })
	cfg.Endpoint = "https://" + address
	return open(t, cfg)
}

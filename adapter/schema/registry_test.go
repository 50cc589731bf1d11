package schema_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/adapter/schema"
	"github.com/postrider/postrider/retry"
)

const secret = "correct-horse-battery"

func TestRegistryConfig(t *testing.T) {
	_, err := schema.NewRegistry(schema.RegistryConfig{
		URL: "http://admin:" + secret + "@registry.example.com/?x=1", Password: secret,
		TLS: &tls.Config{InsecureSkipVerify: true}, Timeout: -1, MaxAnswer: -1, Cache: -1,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"URL: holds a user", "query", "Password is set and User is not", "InsecureSkipVerify", "TLS is set and URL is http",
		"Timeout", "MaxAnswer", "Cache"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q:\n%v", want, err)
		}
	}
	for _, url := range []string{"", "registry.example.com", "ftp://registry.example.com", "http://", "http://%zz" + secret} {
		_, wrong := schema.NewRegistry(schema.RegistryConfig{URL: url})
		if wrong == nil || !strings.Contains(wrong.Error(), "want an address") {
			t.Errorf("%q: got %v", url, wrong)
		}
		err = errors.Join(err, wrong)
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("it shows a password:\n%v", err)
	}

	_, err = schema.NewRegistry(schema.RegistryConfig{URL: "http://registry.example.com", User: "u", Password: secret})
	if err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("a password over plain http: got %v", err)
	}
	for _, url := range []string{"http://localhost:8081", "http://127.0.0.1:8081/", "http://[::1]:8081", "https://registry.example.com/apis/ccompat/v7/"} {
		r, err := schema.NewRegistry(schema.RegistryConfig{URL: url, User: "u", Password: secret})
		if err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", *r, r, r), secret) {
			t.Errorf("printing a registry shows its password")
		}
	}
}

// read decodes a payload of schema ID 7 with a registry.
func read(ctx context.Context, t *testing.T, cfg schema.RegistryConfig) error {
	t.Helper()
	codec := newAvro(t, newRegistry(t, cfg), orderV1)
	return codec.Decode(ctx, &postrider.Message{Payload: []byte("\x00\x00\x00\x00\x07\x0442\x02")}, new(Order))
}

func newRegistry(t *testing.T, cfg schema.RegistryConfig) *schema.Registry {
	t.Helper()
	r, err := schema.NewRegistry(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAnswers checks which answers are decisions of the registry and which are outages. In
// TestRealRegistry a real registry gives the first two kinds; the others come from proxies,
// gateways and broken servers.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   postrider.Class
	}{
		"the schema is unknown":      {404, `{"error_code":40403,"message":"Schema 7 not found"}`, postrider.ClassPermanent},
		"the URL is wrong":           {404, `{"error_code":404,"message":"HTTP 404 Not Found"}`, postrider.ClassUnavailable},
		"somebody else's server":     {404, `<html>no such page</html>`, postrider.ClassUnavailable},
		"the password is wrong":      {401, `{"error_code":401,"message":"Unauthorized"}`, postrider.ClassUnavailable},
		"not allowed":                {403, `{"error_code":40301,"message":"Forbidden"}`, postrider.ClassUnavailable},
		"too many requests":          {429, ``, postrider.ClassUnavailable},
		"its store is down":          {500, `{"error_code":50001,"message":"Error in the backend data store"}`, postrider.ClassUnavailable},
		"the gateway":                {502, `<html>bad gateway</html>`, postrider.ClassUnavailable},
		"a page of a sign-in portal": {200, `<html>sign in</html>`, postrider.ClassUnavailable},
		"a redirect":                 {302, ``, postrider.ClassUnavailable},
		"a very long answer":         {200, `{"schema":"` + strings.Repeat("x", 2<<20) + `"}`, postrider.ClassUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			err := read(t.Context(), t, schema.RegistryConfig{URL: server.URL, User: "u", Password: secret})
			if got := postrider.ClassOf(err); err == nil || got != c.want {
				t.Errorf("got %v, which is %s, want %s", err, got, c.want)
			}
			if s := fmt.Sprint(err); strings.Contains(s, secret) || len(s) > 600 {
				t.Errorf("it is long, or shows the password: %s", s)
			}
			if calls.Load() != 1 {
				t.Errorf("%d requests", calls.Load())
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	err := read(t.Context(), t, schema.RegistryConfig{URL: server.URL})
	if got := retry.DelayOf(err); got != 30*time.Second || postrider.ClassOf(err) != postrider.ClassUnavailable {
		t.Errorf("got %v, to be tried after %s", err, got)
	}
}

func TestRegistryAway(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		addr net.Addr
	}{"refused": {t.Context(), gone.Addr()}, "silent": {t.Context(), silent.Addr()}, "the handler's time is over": {short, silent.Addr()}} {
		begin := time.Now()
		err := read(c.ctx, t, schema.RegistryConfig{URL: "http://" + c.addr.String(), User: "u", Password: secret, Timeout: 200 * time.Millisecond})
		if postrider.ClassOf(err) != postrider.ClassUnavailable || time.Since(begin) > 3*time.Second {
			t.Errorf("%s: got %v after %s", name, err, time.Since(begin))
		}
		if strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("%s: it shows the password: %v", name, err)
		}
	}
}

// TestTLS checks that the registry's certificate is verified, and that the password is sent to no
// other server.
func TestTLS(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if user, password, ok := r.BasicAuth(); !ok || user != "u" || password != secret || r.URL.Path != "/api/schemas/ids/7" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"schema":%q}`, orderV1)
	}))
	server.Config.ErrorLog = quiet
	server.StartTLS()
	defer server.Close()
	cfg := schema.RegistryConfig{URL: server.URL + "/api/", User: "u", Password: secret}

	err := read(t.Context(), t, cfg)
	if postrider.ClassOf(err) != postrider.ClassUnavailable || asked.Load() != 0 {
		t.Errorf("a certificate of an unknown authority: got %v after %d requests", err, asked.Load())
	}
	if wrong := (*tls.CertificateVerificationError)(nil); !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}

	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	cfg.TLS = &tls.Config{RootCAs: pool}
	if err := read(t.Context(), t, cfg); err != nil || asked.Load() != 1 {
		t.Errorf("with its authority: got %v after %d requests", err, asked.Load())
	}
}

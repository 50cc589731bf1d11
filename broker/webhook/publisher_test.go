package webhook

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/webhook/signature"
)

const (
	testSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDGkjGNiyKOmc="
)

// TestRequest checks the request that an endpoint receives.
func TestRequest(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer server.Close()
	p := newTestPublisher(t, Config{
		URL:     strings.Replace(server.URL, "http://", "http://us%40er:p%3Aw@", 1) + "/in/{name}/x?key=1",
		Secrets: []string{testSecret, otherSecret},
		Source:  "/shop",
	})
	m := letter()
	m.Topic = "a b/ü?&#%{name}"
	m.Headers = map[string]string{"traceparent": "00-1"}
	if err := one(t.Context(), p, m); err != nil {
		t.Fatal(err)
	}
	if want := "/in/a%20b%2F%C3%BC%3F&%23%25%7Bname%7D/x?key=1"; got.RequestURI != want {
		t.Errorf("got %s, want %s", got.RequestURI, want)
	}
	user, password, _ := got.BasicAuth()
	if got.Method != http.MethodPost || string(body) != string(m.Payload) || user != "us@er" || password != "p:w" {
		t.Errorf("got %s %q from %s", got.Method, body, user)
	}
	for name, want := range map[string]string{
		"Webhook-Id": m.ID.String(), "Ce-Id": m.ID.String(), "Ce-Specversion": "1.0", "Ce-Type": m.Type, "Ce-Source": "/shop", "Ce-Subject": "1",
		"Content-Type": "application/json", "Traceparent": "00-1", "User-Agent": "postrider",
		"Content-Length": strconv.Itoa(len(m.Payload)),
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: got %q, want %q", name, value, want)
		}
	}
	for _, secret := range []string{testSecret, otherSecret} {
		v, _ := signature.NewVerifier(secret)
		if err := v.Verify(got.Header, time.Now(), body); err != nil {
			t.Error(err)
		}
	}
}

// TestRefusedMessages checks that nothing is sent which HTTP would change or misinterpret.
func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	p := newTestPublisher(t, Config{URL: strings.Replace(server.URL, "//", "//user:pw@", 1) + "/{name}", MaxBody: 100})
	for name, change := range map[string]func(*postrider.Message){
		"up":                 func(m *postrider.Message) { m.Topic = ".." },
		"up inside":          func(m *postrider.Message) { m.Topic = "a/../b" },
		"here":               func(m *postrider.Message) { m.Topic = "." },
		"backslash":          func(m *postrider.Message) { m.Topic = `..\x` },
		"too large":          func(m *postrider.Message) { m.Payload = make([]byte, 101) },
		"line break":         func(m *postrider.Message) { m.Headers = map[string]string{"h": "a\r\nx-evil: 1"} },
		"blank in name":      func(m *postrider.Message) { m.Headers = map[string]string{"h h": "a"} },
		"name not ASCII":     func(m *postrider.Message) { m.Headers = map[string]string{"hä": "a"} },
		"line break in ID":   func(m *postrider.Message) { m.WireID = "a\nb" },
		"line break in type": func(m *postrider.Message) { m.ContentType = "a\r\nb" },
		"reserved":           func(m *postrider.Message) { m.Headers = map[string]string{"transfer-encoding": "chunked"} },
		"signature":          func(m *postrider.Message) { m.Headers = map[string]string{"webhook-signature": "v1,x"} },
		"other user":         func(m *postrider.Message) { m.Headers = map[string]string{"authorization": "x"} },
		"twice":              func(m *postrider.Message) { m.Headers = map[string]string{"H": "1", "h": "2"} },
	} {
		m := letter()
		change(&m)
		if err := one(t.Context(), p, m); postrider.ClassOf(err) != postrider.ClassPermanent {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("the endpoint has seen %d requests", hits.Load())
	}
	if err := one(t.Context(), p, letter()); err != nil {
		t.Error(err)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, format := range codec.Formats() {
		t.Run(string(format), func(t *testing.T) {
			var got postrider.Message
			r := newTestReceiver(t, Config{Format: format}, func(_ context.Context, m postrider.Message) error { got = m; return nil })
			server := httptest.NewServer(r)
			defer server.Close()
			p := newTestPublisher(t, Config{URL: server.URL, Secrets: []string{testSecret}, Format: format})
			m := letter()
			if err := one(t.Context(), p, m); err != nil {
				t.Fatal(err)
			}
			if got.ID != m.ID || string(got.Payload) != string(m.Payload) || got.ContentType != m.ContentType || format != codec.Raw && got.Type != m.Type {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := NewPublisher(Config{
		URL: "ftp://user:s3cret@host", Secrets: []string{"s3cret"}, Timeout: -1, Format: "xml", Source: "a b",
		AllowPrivate: []string{"10.1.2.3"},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"URL", "secrets[0]", "Timeout", "format", "AllowPrivate"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Errorf("shows a secret: %v", err)
	}
	for _, address := range []string{
		"", "x", "//host", "https://", "https://{name}.example.com/", "https://h/{name}?q={name}", "https://h/#f", "https://h/%zz",
	} {
		if _, err := NewPublisher(Config{URL: address}); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
	if _, err := NewPublisher(Config{URL: "https://h", TLS: &tls.Config{InsecureSkipVerify: true}}); err == nil {
		t.Error("InsecureSkipVerify was accepted")
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url     string
		secrets []string
		want    int
	}{
		{"https://u:s3cret@example.com/?k=s3cret", []string{testSecret}, 0},
		{"https://example.com", nil, 1}, {"http://example.com", nil, 2}, {"http://localhost", []string{testSecret}, 0},
		{"http://127.0.0.1:8080", []string{testSecret}, 0}, {"http://[::1]", []string{testSecret}, 0}, {"http://10.0.0.1", []string{testSecret}, 1},
	} {
		got, err := newTestPublisher(t, Config{URL: c.url, Secrets: c.secrets}).Inspect(t.Context(), nil)
		if err != nil || len(got.Warnings) != c.want || !strings.Contains(got.Confirmed, "2xx") || strings.Contains(fmt.Sprint(got), "s3cret") {
			t.Errorf("%s: got %+v, %v", c.url, got, err)
		}
	}
}

// TestRate checks that requests are spread over time, across callers.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for rate, n := range map[int]int{1: 5, 10: 35, 1000: 2500} {
			p, begin := newTestPublisher(t, Config{URL: "https://example.com", Rate: rate}), time.Now()
			var run sync.WaitGroup
			for range 5 {
				run.Go(func() {
					for range n / 5 {
						if err := p.wait(t.Context(), ""); err != nil {
							t.Error(err)
						}
					}
				})
			}
			run.Wait()
			want := time.Duration(n-1) * time.Second / time.Duration(rate)
			if took := time.Since(begin); took != want {
				t.Errorf("%d at %d a second took %v, want %v", n, rate, took, want)
			}
		}
		p := newTestPublisher(t, Config{URL: "https://example.com", Rate: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := p.wait(ctx, ""); err != nil {
			t.Error(err)
		}
		if err := p.wait(ctx, ""); err == nil {
			t.Error("did not end with its context")
		}
	})
}

func TestDriver(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Webhook-Signature") != "" {
			hits.Add(1)
		}
	}))
	defer server.Close()
	d, err := broker.ForURL(server.URL)
	if err != nil || d.Name != "webhook" {
		t.Fatalf("got %v, %v", d.Name, err)
	}
	var dialled atomic.Int32
	s := &broker.Settings{
		URL: server.URL + "/{name}",
		Values: map[string]string{
			"secrets": testSecret + ", " + otherSecret, "timeout": "3s", "parallel": "4", "rate": "1000", "allow_private": "10.0.0.0/8, fd00::/8",
			"allow_loopback": "true",
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	opened, err := d.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	p := opened.(*Publisher)
	defer p.Close()
	if p.cfg.Timeout != 3*time.Second || p.cfg.Parallel != 4 || p.cfg.Rate != 1000 || len(p.cfg.AllowPrivate) != 2 || len(p.cfg.Secrets) != 2 {
		t.Errorf("got %+v", p.cfg)
	}
	if err := one(t.Context(), p, letter()); err != nil || hits.Load() != 1 || dialled.Load() != 1 {
		t.Errorf("got %v, %d signed requests over %d connections", err, hits.Load(), dialled.Load())
	}
	fresh := &broker.Settings{URL: server.URL, Values: map[string]string{"allow_loopback": "true"}}
	for messages, s := range map[int]*broker.Settings{100: s, 3: fresh} {
		if err := d.Bare(t.Context(), s, broker.Load{Name: "x", Messages: messages, Size: 10, Keys: 3}); err != nil {
			t.Error(err)
		}
	}
	if err := d.Bare(t.Context(), &broker.Settings{URL: server.URL}, broker.Load{Name: "x", Messages: 1}); err == nil {
		t.Error("this machine was reached without being allowed")
	}
	if _, err := d.Open(&broker.Settings{URL: server.URL, Values: map[string]string{"allow_private": "x", "secrets": "y"}}); err == nil ||
		!strings.Contains(err.Error(), "AllowPrivate") || !strings.Contains(err.Error(), "secrets[0]") {
		t.Errorf("got %v, want both mistakes", err)
	}
}

func BenchmarkPublish(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	p, err := NewPublisher(Config{URL: server.URL, Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))}, AllowLoopback: true})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	msgs := make([]postrider.Message, 500)
	for i := range msgs {
		msgs[i] = letter()
		msgs[i].AggregateID = strconv.Itoa(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if errs := p.Publish(context.Background(), msgs); errs != nil {
			b.Fatal(errs)
		}
	}
	b.ReportMetric(float64(b.N*len(msgs))/b.Elapsed().Seconds(), "msg/s")
}

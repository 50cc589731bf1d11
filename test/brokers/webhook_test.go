package brokers_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// endpoint is a webhook receiver with configurable failures.
type endpoint struct {
	*httptest.Server
	answer atomic.Pointer[http.HandlerFunc] // replaces the receiver's response; nil if it works
	asked  atomic.Int64                     // requests with a replaced response
	judge  *judge
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{judge: newJudge(0)}
	receiver, err := webhook.NewReceiver(webhook.Config{Secrets: []string{secret}}, func(_ context.Context, m postrider.Message) error {
		e.judge.receive(m)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer := e.answer.Load(); answer != nil {
			e.asked.Add(1)
			(*answer)(w, r)
			return
		}
		receiver.ServeHTTP(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) publisher(t *testing.T) postrider.Publisher {
	t.Helper()
	p, err := webhook.NewPublisher(webhook.Config{
		URL: e.URL, Secrets: []string{secret}, Timeout: time.Second, AllowLoopback: true, Logger: logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestWebhookOutage has an endpoint answer 500, then 429 with Retry-After, and then not at all.
func TestWebhookOutage(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"429 with Retry-After": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		"never": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that the client has disconnected
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t)
			s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), "hook", 100)
			r, stop := s.carry(e.publisher(t))
			s.enqueue(200)
			s.delivered(r, 200, time.Minute)
			healthy := s.produce(lengthOfOutage() / 2)
			e.answer.Store(&answer)
			watch := s.watch()
			during := s.produce(lengthOfOutage())
			seen := watch.stop()
			published, asked := r.Stats().Published, e.asked.Load()
			e.answer.Store(nil)
			working := time.Now()
			s.delivered(r, published+1, 20*time.Second)
			recovery := time.Since(working)
			s.delivered(r, s.committed.Load(), 4*time.Minute)
			stop()
			t.Logf("%s: producers %.0f/s before, %.0f/s meanwhile; %d requests and %d ledger rows in %v, longest idle transaction %v; recovery %v",
				name, healthy, during, asked, seen.ledgerRows, seen.length.Round(time.Second), seen.longest, recovery.Round(time.Millisecond))
			if need.IsLong() && during < 0.9*healthy {
				t.Errorf("producers were slowed down: %.0f/s before, %.0f/s meanwhile", healthy, during)
			}
			seen.expect(t)
			if recovery > 5*time.Second {
				t.Errorf("the relay took %v to recover", recovery)
			}
			e.judge.mu.Lock()
			defer e.judge.mu.Unlock()
			s.expect(e.judge.v, true)
		})
	}
}

package webhook

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook/signature"
)

func newTestReceiver(t *testing.T, cfg Config, handle postrider.Handler) *Receiver {
	t.Helper()
	cfg.Secrets, cfg.Logger = []string{testSecret}, slog.New(slog.DiscardHandler)
	r, err := NewReceiver(cfg, handle)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func post(r *Receiver, change func(*http.Request), body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	s, _ := signature.NewSigner(testSecret)
	s.Sign(req.Header, "id-1", time.Now(), []byte(body))
	if change != nil {
		change(req)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

// keyed gives a request an event with the key.
func keyed(key string) func(*http.Request) {
	return func(r *http.Request) {
		for name, value := range map[string]string{"specversion": "1.0", "id": "id-1", "source": "/", "type": "t", "partitionkey": key} {
			r.Header.Set("ce-"+name, value)
		}
	}
}

// TestReceiverIdentity checks that unsigned parts of a request do not affect the message's
// identity: a replay could otherwise become another message.
func TestReceiverIdentity(t *testing.T) {
	t.Parallel()
	var got []postrider.Message
	r := newTestReceiver(t, Config{}, func(_ context.Context, m postrider.Message) error { got = append(got, m); return nil })
	other := postrider.NewID()
	for _, change := range []func(*http.Request){
		nil, keyed("k"),
		func(r *http.Request) { keyed("k")(r); r.Header.Set("ce-source", "/other") },
		func(r *http.Request) {
			r.Header.Set("postrider-id", other.String()+":"+fmt.Sprintf("%x", crc32.ChecksumIEEE([]byte("0:id-1"))))
		},
		func(r *http.Request) { r.SetPathValue("name", "elsewhere") },
	} {
		if w := post(r, change, "x"); w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if m := got[len(got)-1]; m.ID != got[0].ID || m.ID.IsZero() || m.WireID != "id-1" {
			t.Errorf("got %s, known as %s, want %s", m.WireID, m.ID, got[0].ID)
		}
	}
}

func TestReceiverAnswers(t *testing.T) {
	t.Parallel()
	var got postrider.Message
	var fail error
	r := newTestReceiver(t, Config{MaxBody: 100}, func(_ context.Context, m postrider.Message) error { got = m; return fail })
	for name, c := range map[string]struct {
		change func(*http.Request)
		body   string
		want   int
	}{
		"good":            {nil, "x", 204},
		"GET":             {func(r *http.Request) { r.Method = http.MethodGet }, "x", 405},
		"not signed":      {func(r *http.Request) { r.Header.Del("webhook-signature") }, "x", 401},
		"wrongly signed":  {func(r *http.Request) { r.Header.Set("webhook-id", "id-2") }, "x", 401},
		"too large":       {nil, strings.Repeat("x", 101), 413},
		"just not":        {nil, strings.Repeat("x", 100), 204},
		"no event":        {func(r *http.Request) { r.Header.Set("ce-specversion", "1.0") }, "x", 400},
		"no event at all": {func(r *http.Request) { r.Header.Set("content-type", "application/cloudevents+json") }, "x", 400},
		"half a body":     {func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)) }, "x", 408},
		"another's ID": {func(r *http.Request) {
			for _, name := range []string{"id", "source", "type"} {
				r.Header.Set("ce-"+name, "x")
			}
			r.Header.Set("ce-specversion", "1.0")
		}, "x", 400},
	} {
		if w := post(r, c.change, c.body); w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
	post(r, func(r *http.Request) {
		r.Header.Set("X-Mine", "1")
		r.Header.Set("Authorization", "Bearer s3cret")
		r.SetPathValue("name", "orders")
	}, "payload")
	if got.WireID != "id-1" || string(got.Payload) != "payload" || got.Topic != "orders" || len(got.Headers) != 1 || got.Headers["x-mine"] != "1" {
		t.Errorf("got %+v", got)
	}
	fail = errors.New("s3cret detail")
	if w := post(r, nil, "x"); w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "s3cret") {
		t.Errorf("a failing handler: got %d %s", w.Code, w.Body)
	}
}

// TestReceiverHandlesAKeyInTurn sends two messages of one key and one of another concurrently.
func TestReceiverHandlesAKeyInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now := make(map[string]int)
		r := newTestReceiver(t, Config{InFlight: 3}, func(_ context.Context, m postrider.Message) error {
			mu.Lock()
			now[m.OrderKey()]++
			if now[m.OrderKey()] > 1 {
				t.Errorf("%d messages of %s at a time", now[m.OrderKey()], m.OrderKey())
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[m.OrderKey()]--
			mu.Unlock()
			return nil
		})
		begin := time.Now()
		var posts sync.WaitGroup
		for _, key := range []string{"a", "b", "a"} {
			posts.Go(func() {
				if w := post(r, keyed(key), "x"); w.Code != 204 {
					t.Errorf("got %d", w.Code)
				}
			})
		}
		posts.Wait()
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %v, want 2 s", took)
		}
	})
}

// TestReceiverTimesOut checks that a request that cannot be handled soon is refused, and that other
// keys do not wait for a slow one.
func TestReceiverTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := newTestReceiver(t, Config{InFlight: 2}, func(context.Context, postrider.Message) error { <-release; return nil })
		var posts sync.WaitGroup
		send := func(key string, want int, within time.Duration) {
			posts.Go(func() {
				begin := time.Now()
				if w := post(r, keyed(key), "x"); w.Code != want || time.Since(begin) != within {
					t.Errorf("%s: got %d after %v, want %d after %v", key, w.Code, time.Since(begin), want, within)
				}
			})
			synctest.Wait()
		}
		send("slow", 204, 6*time.Second)
		send("slow", 503, waitTimeout)
		send("other", 204, 6*time.Second)
		send("third", 503, waitTimeout) // all slots are taken
		time.Sleep(6 * time.Second)
		close(release)
		posts.Wait()
		send("slow", 204, 0)
		posts.Wait()
	})
}

func TestReceiverConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no secret":      {},
		"negative":       {Secrets: []string{testSecret}, MaxBody: -1},
		"no such format": {Secrets: []string{testSecret}, Format: "xml"},
		"no such secret": {Secrets: []string{"x"}},
	} {
		if _, err := NewReceiver(cfg, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

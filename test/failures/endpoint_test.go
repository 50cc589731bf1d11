package failures_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
	"github.com/postrider/postrider/internal/need"
)

// pick returns the size of a test: small for every change, large for the long tier.
func pick[T any](small, large T) T {
	if need.IsLong() {
		return large
	}
	return small
}

// numbered returns a message with its number within its key.
func numbered(topic, key string, n int) postrider.Message {
	m := postrider.Event("parcel.moved", postrider.Aggregate{Type: "parcel", ID: key}, fmt.Appendf(nil, "%s %d", key, n))
	m.Topic = topic
	return m
}

// enqueueAll enqueues many messages, some hundreds per transaction.
func (s *scene) enqueueAll(msgs []postrider.Message) {
	s.t.Helper()
	for part := range slices.Chunk(msgs, 500) {
		s.enqueue(part...)
	}
}

// arrivals records numbered messages that have arrived.
type arrivals struct {
	mu       sync.Mutex
	got      map[string][]int // by key, in the order of their first arrival
	at       map[string]time.Time
	distinct int
	repeated int
}

// add records the payload of a message.
func (a *arrivals) add(payload []byte) {
	now := time.Now()
	payload, _, _ = bytes.Cut(payload, []byte("\n")) // the rest is padding
	var key string
	var n int
	if _, err := fmt.Sscan(string(payload), &key, &n); err != nil {
		panic("a payload that no test has written")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.got == nil {
		a.got, a.at = make(map[string][]int), make(map[string]time.Time)
	}
	if _, again := a.at[string(payload)]; again {
		a.repeated++
		return
	}
	a.at[string(payload)] = now
	a.got[key] = append(a.got[key], n)
	a.distinct++
}

func (a *arrivals) count() (distinct, repeated int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.distinct, a.repeated
}

// checkOrder fails if the first arrivals of a key are out of order.
func (a *arrivals) checkOrder(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, got := range a.got {
		if !slices.IsSorted(got) {
			t.Errorf("%s arrived in the order %v", key, got)
		}
	}
}

// endpoint is an HTTP server that accepts messages, unless status says otherwise.
type endpoint struct {
	*httptest.Server
	arrivals
	status func(name, body string) int // nil, or 0: accepted
}

func newEndpoint(t *testing.T, status func(name, body string) int) *endpoint {
	t.Helper()
	e := &endpoint{status: status}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	status := 0
	if e.status != nil {
		status = e.status(strings.TrimPrefix(r.URL.Path, "/"), string(body))
	}
	if status == 0 {
		e.add(body)
	}
	w.WriteHeader(cmp.Or(status, http.StatusNoContent))
}

// sender returns a publisher that posts to a path of the endpoint, such as "/{name}".
func (e *endpoint) sender(t *testing.T, path string) postrider.Publisher {
	t.Helper()
	return sender(t, e.URL+path)
}

func sender(t *testing.T, url string) postrider.Publisher {
	t.Helper()
	p, err := webhook.NewPublisher(webhook.Config{URL: url, AllowLoopback: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// numbers returns the numbers that have arrived for a key.
func (a *arrivals) numbers(key string) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got[key])
}

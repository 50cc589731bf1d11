package alerts_test

import (
	"regexp"
	"sync"
	"testing"
	"time"
)

// timeout bounds every wait, on a busy machine.
const timeout = 40 * time.Second

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(timeout)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v in vain until %s", timeout, what)
		}
	}
}

func receive(t *testing.T, from <-chan string) string {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(timeout):
		t.Fatal("a program does not say where it listens")
		return ""
	}
}

// finder keeps a log, and sends the first match of a pattern in it.
type finder struct {
	mu      sync.Mutex
	text    []byte
	pattern *regexp.Regexp
	found   chan<- string // nil after the match
}

func (f *finder) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = append(f.text, p...)
	if f.found != nil {
		if m := f.pattern.FindSubmatch(f.text); m != nil {
			f.found <- string(m[1])
			f.found = nil
		}
	}
	return len(p), nil
}

func (f *finder) tail() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.text[max(0, len(f.text)-4000):])
}

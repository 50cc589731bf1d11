package guard

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A panic costs one answer, and the answer tells nothing. Half an answer is cut off.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	h := handler(Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hint":
			w.WriteHeader(http.StatusEarlyHints)
		case "/status":
			w.WriteHeader(http.StatusOK)
		case "/late":
			_, _ = io.WriteString(w, `{"items": [`)
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set("ETag", "x")
		panic("s3cr3t")
	})
	server := httptest.NewServer(h)
	defer server.Close()
	get := func(path string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
	status, body, err := get("/early")
	if status != 500 || err != nil || strings.Contains(body, "s3cr3t") || strings.Contains(body, ".go") {
		t.Errorf("got %d %s %v", status, body, err)
	}
	if !strings.Contains(log.String(), "panics_test.go") {
		t.Errorf("no stack in the log: %s", log.String())
	}
	for _, path := range []string{"/status", "/late"} {
		if _, body, err := get(path); err == nil {
			t.Errorf("%s: half an answer looks whole: %s", path, body)
		}
	}
	if status, _, err := get("/hint"); status != 500 || err != nil {
		t.Errorf("after a hint: got %d %v", status, err)
	}
}

// Streams work through the guard, in both ways of flushing.
func TestStream(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(handler(Config{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: 1\n\n")
		if f, ok := w.(http.Flusher); ok && r.URL.Path == "/a" {
			f.Flush()
		} else if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	for _, path := range []string{"/a", "/b"} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
		var got []byte
		buf := make([]byte, 1024)
		for !bytes.Contains(got, []byte("data: 1")) {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("%s: %v after %q", path, err, got)
			}
			got = append(got, buf[:n]...)
		}
	}
}

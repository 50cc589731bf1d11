package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/memory"
)

// TestReplay checks that a replay has the same bytes, without header fields that belong only to the
// first response.
func TestReplay(t *testing.T) {
	s := open(t)
	s.plain("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for name, value := range map[string]string{"Location": "/orders/1", "ETag": `"1"`, "Set-Cookie": "secret", "Authorization": "secret",
			"WWW-Authenticate": "secret", "X-Request-Id": "7", "Content-Length": "3", "Link": "</a>; rel=b"} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(201)
		w.Header().Set("Location", "too late")
		fmt.Fprintf(w, "<html>%s %s", body, r.PathValue("id"))
	})
	first := s.want(ask("POST /orders/1?a=b", "body"), 201, 1, 0)
	if first.Header().Get("Set-Cookie") != "secret" || first.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("first: %v", first.Header())
	}
	second := s.want(ask("POST /orders/1?a=b", "body", "Idempotency-Key", "k"), 201, 1, 0)
	want := http.Header{"Location": {"/orders/1"}, "Etag": {`"1"`}, "Link": {"</a>; rel=b"}, "Idempotency-Replayed": {"true"},
		"Content-Type": {"text/html; charset=utf-8"}}
	if !reflect.DeepEqual(second.Header(), want) || second.Body.String() != first.Body.String() {
		t.Errorf("second: %v\n%s", second.Header(), second.Body)
	}
	for _, other := range []*http.Request{
		ask("POST /orders/1?a=b", "body", "Content-Type", "application/xml"), ask("POST /orders/1?a=b", "another"), ask("POST /orders/1?a=c", "body"), ask("POST /orders/2?a=b", "body"),
	} {
		s.want(other, 422, 1, 0)
	}
	s.want(ask("POST /orders/1?a=b", "another", "Idempotency-Key", "k2"), 201, 2, 0)
}

// TestMultipart checks that a form with another boundary is the same request, because clients
// rebuild the form for a retry.
func TestMultipart(t *testing.T) {
	s := open(t)
	s.plain("POST /forms", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201) })
	form := func(boundary, value string) *http.Request {
		body := "--" + boundary + "\r\nContent-Disposition: form-data; name=a\r\n\r\n" + value + "\r\n--" + boundary + "--\r\n"
		return ask("POST /forms", body, "Content-Type", "multipart/form-data; boundary="+boundary)
	}
	s.want(form("one", "1"), 201, 1, 0)
	s.want(form("two", "1"), 201, 1, 0)
	s.want(form("two", "2"), 422, 1, 0)
	s.want(ask("POST /forms", "--one", "Content-Type", "multipart/form-data"), 422, 1, 0)
}

// TestOverTheWire compares both answers as received from a real server.
func TestOverTheWire(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"no content":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); io.WriteString(w, "x") },
		"guessed type": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\x89PNG\x0D\x0A\x1A\x0A") },
		"type not guessed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<html>")
		},
		"encoded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "zstd")
			io.WriteString(w, "<html>")
		},
		"early hints":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(202) },
		"written once": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.plain("POST /", handler)
			server := httptest.NewServer(s.mux)
			defer server.Close()
			var got [2]string
			for i := range got {
				r, _ := http.NewRequest("POST", server.URL, strings.NewReader("body"))
				r.Header.Set("User", "ann")
				r.Header.Set("Idempotency-Key", `"k"`)
				response, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				response.Header.Del("Date")
				if replayed := response.Header.Get("Idempotency-Replayed") != ""; replayed != (i == 1) {
					t.Errorf("replayed: %v", replayed)
				}
				response.Header.Del("Idempotency-Replayed")
				got[i] = fmt.Sprint(response.Status, response.Header, response.ContentLength, string(body))
			}
			if got[0] != got[1] || s.runs.now() != 1 {
				t.Errorf("%d runs\n%q\n%q", s.runs.now(), got[0], got[1])
			}
		})
	}
}

func TestStatuses(t *testing.T) {
	for status, kept := range map[int]bool{200: true, 201: true, 204: true, 302: true, 400: true, 402: true, 404: true, 422: true,
		401: false, 403: false, 408: false, 409: false, 425: false, 429: false, 500: false, 502: false, 503: false, 599: false} {
		s := open(t)
		s.plain("POST /", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		s.whole("POST /whole", func(ctx context.Context, _ *memory.Tx, _ *http.Request) (idempotency.Answer, error) {
			s.effect(ctx)
			return idempotency.Answer{Status: status}, nil
		})
		more, done := 1, 0
		if kept {
			more, done = 0, 1
		}
		s.want(ask("POST /", ""), status, 1, 0)
		s.want(ask("POST /", ""), status, 1+more, 0)
		s.want(ask("POST /whole", ""), status, 2+more, done)
		s.want(ask("POST /whole", ""), status, 2+2*more, done)
	}
}

// TestOutstanding checks that requests are refused, or wait, while another one with their key is
// served.
func TestOutstanding(t *testing.T) {
	for _, wait := range []time.Duration{0, 5 * time.Second, time.Minute} {
		for _, path := range []string{"/plain", "/whole"} {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, func(c *idempotency.Config) { c.Wait, c.Lease = wait, time.Hour })
				s.plain("POST /plain", func(w http.ResponseWriter, _ *http.Request) {
					time.Sleep(10 * time.Second)
					io.WriteString(w, "done")
				})
				s.whole("POST /whole", func(context.Context, *memory.Tx, *http.Request) (idempotency.Answer, error) {
					time.Sleep(10 * time.Second)
					return idempotency.Answer{Body: []byte("done")}, nil
				})
				go s.do(ask("POST "+path, ""))
				synctest.Wait()
				start := time.Now()
				if wait < 10*time.Second {
					w := s.want(ask("POST "+path, ""), 409, 1, 0)
					if w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "outstanding") {
						t.Errorf("%v %s", w.Header(), w.Body)
					}
				} else if w := s.want(ask("POST "+path, ""), 200, 1, 0); w.Body.String() != "done" {
					t.Error(w.Body)
				}
				if took := time.Since(start); took < min(wait, 10*time.Second) || took > min(wait, 10*time.Second)+time.Second {
					t.Errorf("waited for %v", took)
				}
				time.Sleep(time.Minute)
			})
		}
	}
}

// TestPanic checks that a panic releases the key and propagates.
func TestPanic(t *testing.T) {
	s := open(t)
	s.plain("POST /plain", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	s.whole("POST /whole", func(ctx context.Context, _ *memory.Tx, _ *http.Request) (idempotency.Answer, error) {
		s.effect(ctx)
		panic(http.ErrAbortHandler)
	})
	for i, path := range []string{"/plain", "/plain", "/whole", "/whole"} {
		func() {
			defer func() {
				if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
					t.Errorf("recovered %v", got)
				}
			}()
			s.do(ask("POST "+path, ""))
		}()
		if s.runs.now() != i+1 || s.done.now() != 0 {
			t.Errorf("%d runs, %d effects", s.runs.now(), s.done.now())
		}
	}
}

// TestContext checks that the context of a handler ends at the lease and not when the client
// disconnects.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		type value struct{}
		gone, cancel := context.WithCancel(context.WithValue(t.Context(), value{}, "x"))
		check := func(ctx context.Context) {
			cancel()
			if deadline, ok := ctx.Deadline(); ctx.Err() != nil || !ok || time.Until(deadline) != time.Minute || ctx.Value(value{}) != "x" {
				t.Errorf("%v, ends in %v", ctx.Err(), time.Until(deadline))
			}
		}
		s.plain("POST /plain", func(_ http.ResponseWriter, r *http.Request) { check(r.Context()) })
		s.want(ask("POST /plain", "").WithContext(gone), 200, 1, 0)
		s.want(ask("POST /plain", ""), 200, 1, 0)
		s.whole("POST /whole", func(ctx context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
			check(ctx)
			return idempotency.Answer{}, nil
		})
		s.want(ask("POST /whole", "").WithContext(gone), 200, 2, 0)
		s.want(ask("POST /whole", ""), 200, 2, 0)
	})
}

func TestNoStreaming(t *testing.T) {
	s := open(t)
	s.plain("POST /", func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := c.Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("flush: %v", err)
		}
		if _, _, err := c.Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
	})
	s.want(ask("POST /", ""), 200, 1, 0)
}

// TestTooLarge checks that a request whose answer is too large to be stored is not repeated.
func TestTooLarge(t *testing.T) {
	s := open(t, func(c *idempotency.Config) { c.MaxAnswer = 3 })
	s.plain("POST /plain", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "secret")
		if _, err := io.WriteString(w, "1234"); !errors.Is(err, idempotency.ErrTooLarge) {
			t.Error(err)
		}
	})
	first := s.want(ask("POST /plain", ""), 500, 1, 0)
	second := s.want(ask("POST /plain", ""), 500, 1, 0)
	if first.Body.String() != second.Body.String() || first.Header().Get("Set-Cookie") != "" {
		t.Errorf("%v %s\n%s", first.Header(), first.Body, second.Body)
	}
	s.whole("POST /whole", func(ctx context.Context, _ *memory.Tx, r *http.Request) (idempotency.Answer, error) {
		s.effect(ctx)
		return idempotency.Answer{Body: []byte("1234")}, nil
	})
	s.want(ask("POST /whole", ""), 500, 2, 0)
}

// TestStoreFails checks that nothing is done without the store, and that the result of completed
// work is sent even if it cannot be stored.
func TestStoreFails(t *testing.T) {
	s := open(t)
	faults := &failing{Store: s.store.IdempotencyKeys()}
	s.wire(faults)
	s.plain("POST /plain", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) })
	s.whole("POST /whole", func(ctx context.Context, _ *memory.Tx, _ *http.Request) (idempotency.Answer, error) {
		s.effect(ctx)
		return idempotency.Answer{Status: 201}, nil
	})
	faults.claim = 2
	for _, path := range []string{"/plain", "/whole"} {
		if w := s.want(ask("POST "+path, ""), 503, 0, 0); w.Header().Get("Retry-After") == "" {
			t.Error(w.Header())
		}
	}
	faults.save = 2 // the middleware retries
	s.want(ask("POST /plain", ""), 201, 1, 0)
	s.want(ask("POST /plain", ""), 201, 1, 0)
	s.want(ask("POST /whole", ""), 201, 2, 1)
	synctest.Test(t, func(t *testing.T) {
		faults.save = 1000
		s.want(ask("POST /plain", "", "Idempotency-Key", "k2"), 201, 3, 1)
		faults.save = 0
		s.want(ask("POST /plain", "", "Idempotency-Key", "k2"), 409, 3, 1)
		time.Sleep(time.Minute)
		s.want(ask("POST /plain", "", "Idempotency-Key", "k2"), 201, 4, 1) // repeated, because it was not stored
	})
}

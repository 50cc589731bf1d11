package webhook

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/port"
)

// confirmed stands for no error.
const confirmed = postrider.Class(-1)

// script simulates an endpoint on one connection after it has read a request.
type script func(conn net.Conn, in *bufio.Reader, over <-chan struct{})

// say answers with exactly this text and keeps the connection open.
func say(text string) script {
	return func(conn net.Conn, in *bufio.Reader, over <-chan struct{}) {
		_, _ = io.WriteString(conn, text)
		<-over
	}
}

// status answers with a status and headers, each ended by a line break.
func status(code int, headers string) script {
	return say(fmt.Sprintf("HTTP/1.1 %d Whatever\r\n%sContent-Length: 0\r\n\r\n", code, headers))
}

func hangUp(net.Conn, *bufio.Reader, <-chan struct{}) {}

// serve listens and runs the script on every connection. It returns the address and the number of
// requests.
func serve(t *testing.T, play script) (string, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var requests atomic.Int32
	t.Cleanup(func() {
		close(over)
		_ = l.Close()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if req.ContentLength < 1<<20 { // larger ones are left to the script
					_, _ = io.Copy(io.Discard, req.Body)
				}
				requests.Add(1)
				play(conn, in, over)
			}()
		}
	}()
	return l.Addr().String(), &requests
}

func newTestPublisher(t *testing.T, cfg Config) *Publisher {
	t.Helper()
	cfg.AllowLoopback = true
	cfg.Logger = slog.New(slog.DiscardHandler)
	p, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func one(ctx context.Context, p *Publisher, m postrider.Message) error {
	if errs := p.Publish(ctx, []postrider.Message{m}); errs != nil {
		return errs[0]
	}
	return nil
}

func letter() postrider.Message {
	return postrider.Event("letter.sent", postrider.Aggregate{Type: "letter", ID: "1"}, map[string]int{"n": 1})
}

func TestBehaviours(t *testing.T) {
	type behaviour struct {
		name string
		play script
		want postrider.Class
		text string // contained in the error
	}
	const (
		permanent   = postrider.ClassPermanent
		unavailable = postrider.ClassUnavailable
		unknown     = postrider.ClassUnknown
	)
	all := []behaviour{
		{"200 with an error in its body", say("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{\"error\":\"bad\"}"), confirmed, ""},
		{"200 with a slow body", say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), confirmed, ""},
		{"200 with half a body", func(c net.Conn, _ *bufio.Reader, _ <-chan struct{}) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		}, confirmed, ""},
		{"200 with a broken chunk", say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), confirmed, ""},
		{"200 with a huge body", func(c net.Conn, _ *bufio.Reader, _ <-chan struct{}) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
			for _, err := c.Write(make([]byte, 64<<10)); err == nil; {
				_, err = c.Write(make([]byte, 64<<10))
			}
		}, confirmed, ""},
		{"204 and then rubbish", say("HTTP/1.1 204 No Content\r\n\r\nrubbish"), confirmed, ""},
		{"100, 103 and then 202", say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"), confirmed, ""},
		{"HTTP/1.0", say("HTTP/1.0 200 OK\r\n\r\n"), confirmed, ""},

		{"101 switches protocols", status(101, "Upgrade: x\r\nConnection: upgrade\r\n"), unavailable, "101"},
		{"redirect without a place", status(301, ""), unavailable, "not followed"},
		{"redirect with secrets", status(302, "Location: https://user:pw@other.example/next?token=s3cret#f\r\n"), unavailable, `"https://other.example/next"`},
		{"redirect to the metadata service", status(307, "Location: http://169.254.169.254/latest\r\n"), unavailable, "not followed"},
		{"redirect to nonsense", status(308, "Location: http://[::\r\n"), unavailable, "not followed"},
		{"not modified", status(304, ""), unavailable, "304"},
		{"gone", status(410, ""), unavailable, "no more messages"},

		{"503, later in seconds", status(503, "Retry-After: 7\r\n"), unavailable, "503"},
		{"429, later at a date", status(429, "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n"), unavailable, "429"},
		{"599", status(599, ""), unknown, "599"},
		{"999", status(999, ""), unknown, "999"},

		{"hangs up", hangUp, unknown, "no answer"},
		{"resets", func(c net.Conn, _ *bufio.Reader, _ <-chan struct{}) { _ = c.(*net.TCPConn).SetLinger(0) }, unknown, "no answer"},
		{"says nothing", say(""), unknown, "deadline"},
		{"half a status line", func(c net.Conn, _ *bufio.Reader, _ <-chan struct{}) { _, _ = io.WriteString(c, "HTTP/1.1 20") }, unknown, ""},
		{"slow headers", say("HTTP/1.1 200 OK\r\nContent-"), unknown, "deadline"},
		{"headers without end", func(c net.Conn, _ *bufio.Reader, _ <-chan struct{}) {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for err == nil {
				_, err = io.WriteString(c, "X-Filler: "+strings.Repeat("x", 8<<10)+"\r\n")
			}
		}, unknown, ""},
		{"no HTTP at all", say("220 mail.example.com ESMTP\r\n"), unknown, ""},
		{"no HTTP of ours", say("HTTP/9.9 OK\r\n\r\n"), unknown, ""},
		{"two lengths", say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), unknown, ""},
		{"only 100", say("HTTP/1.1 100 Continue\r\n\r\n"), unknown, ""},
	}
	for _, code := range []int{200, 201, 202, 203, 204, 205, 206, 207, 226, 299} {
		all = append(all, behaviour{fmt.Sprint(code), status(code, ""), confirmed, ""})
	}
	for _, code := range []int{400, 406, 409, 411, 412, 413, 414, 415, 417, 418, 422, 423, 424, 428, 431, 451, 499} {
		all = append(all, behaviour{fmt.Sprint(code), status(code, ""), permanent, fmt.Sprint(code)})
	}
	for _, code := range []int{300, 303, 401, 402, 403, 404, 405, 407, 408, 410, 421, 425, 426, 429, 502, 503, 504} {
		all = append(all, behaviour{fmt.Sprint(code), status(code, ""), unavailable, fmt.Sprint(code)})
	}
	for _, code := range []int{500, 501, 505, 507, 508, 511, 520, 521, 522, 524, 530} {
		all = append(all, behaviour{fmt.Sprint(code), status(code, ""), unknown, fmt.Sprint(code)})
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			address, _ := serve(t, b.play)
			p := newTestPublisher(t, Config{URL: "http://" + address + "/hook?key=s3cret", Timeout: 3 * time.Second})
			err := one(t.Context(), p, letter())
			got := postrider.ClassOf(err)
			if err == nil {
				got = confirmed
			}
			if got != b.want || err != nil && !strings.Contains(err.Error(), b.text) {
				t.Errorf("got %v (%v), want %v with %q", err, got, b.want, b.text)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows a query: %v", err)
			}
		})
	}
	t.Logf("%d behaviours", len(all))
}

func TestNotReached(t *testing.T) {
	t.Parallel()
	nobody := port.For(t)
	plain, _ := serve(t, status(200, ""))
	unvouched := httptest.NewUnstartedServer(nil)
	unvouched.Config.ErrorLog = log.New(io.Discard, "", 0)
	unvouched.StartTLS()
	defer unvouched.Close()
	for name, address := range map[string]string{
		"nobody listens":   "http://" + nobody,
		"no such name":     "http://nowhere.invalid",
		"TLS to plain":     "https://" + plain,
		"no authority":     unvouched.URL,
		"no such user":     "http://user:s3cret@" + nobody,
		"broken handshake": "https://" + firstByteAndOut(t),
	} {
		t.Run(name, func(t *testing.T) {
			err := one(t.Context(), newTestPublisher(t, Config{URL: address, Timeout: 2 * time.Second}), letter())
			if postrider.ClassOf(err) != postrider.ClassUnavailable || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("got %v (%v), want unavailable", err, postrider.ClassOf(err))
			}
		})
	}
}

// firstByteAndOut is a server that closes the connection when a handshake begins.
func firstByteAndOut(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestRetryAfter checks that the publisher respects a delay that the endpoint requests.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header   string
		min, max time.Duration
	}{
		"seconds":           {"120", 119 * time.Second, 120 * time.Second},
		"many seconds":      {"86400", 299 * time.Second, maxRetryAfter},
		"absurd seconds":    {"99999999999999999", 299 * time.Second, maxRetryAfter},
		"a date":            {time.Now().Add(100 * time.Second).UTC().Format(http.TimeFormat), 60 * time.Second, 100 * time.Second},
		"a far date":        {"Fri, 31 Dec 2100 23:59:59 GMT", 299 * time.Second, maxRetryAfter},
		"a date gone by":    {"Mon, 01 Jan 2001 00:00:00 GMT", 0, 0},
		"nothing":           {"", 0, 0},
		"negative":          {"-5", 0, 0},
		"a fraction":        {"1.5", 0, 0},
		"nonsense":          {"soon", 0, 0},
		"an old date style": {time.Now().Add(100 * time.Second).UTC().Format(time.ANSIC), 60 * time.Second, 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			address, requests := serve(t, status(503, "Connection: close\r\nRetry-After: "+c.header+"\r\n"))
			p := newTestPublisher(t, Config{URL: "http://" + address})
			for attempt := range int32(2) {
				err := one(t.Context(), p, letter())
				var after interface{ RetryAfter() time.Duration }
				if !errors.As(err, &after) || postrider.ClassOf(err) != postrider.ClassUnavailable {
					t.Fatalf("got %v", err)
				}
				if got := after.RetryAfter(); got < c.min-time.Second || got > c.max {
					t.Errorf("got %v, want %v to %v", got, c.min, c.max)
				}
				if want := attempt + 1; c.max == 0 && requests.Load() != want || c.max > 0 && requests.Load() != 1 {
					t.Errorf("after %d attempts the endpoint has seen %d requests", want, requests.Load())
				}
			}
			p.pause("", &StatusError{until: time.Now()}) // as if the time had passed
			before := requests.Load()
			if _ = one(t.Context(), p, letter()); requests.Load() != before+1 {
				t.Error("nothing was sent after the pause")
			}
		})
	}
}

// TestRefusalOfAName checks what an answer concerns: one of several endpoints, or the only one. A
// delay that one endpoint requests must not affect the others.
func TestRefusalOfAName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]postrider.Scope{"/hooks/{name}": postrider.ScopeName, "/hook": postrider.ScopeDestination} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/good") {
				return
			}
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		defer server.Close()
		p := newTestPublisher(t, Config{URL: server.URL + path})
		bad, good := letter(), letter()
		bad.Topic, good.Topic, good.AggregateID = "bad", "good", "2"
		for range 2 { // the second time without a request
			errs := p.Publish(t.Context(), []postrider.Message{bad, good})
			if len(errs) != 2 || postrider.ClassOf(errs[0]) != postrider.ClassUnavailable || postrider.ScopeOf(errs[0]) != want {
				t.Fatalf("%s: got %v, want scope %v", path, errs, want)
			}
			if (errs[1] == nil) != (want == postrider.ScopeName) {
				t.Errorf("%s: the other name: %v", path, errs[1])
			}
		}
	}
}

// TestDeadConnection lets the endpoint close an idle connection of the publisher: the next message
// must use a new one.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	address, requests := serve(t, func(c net.Conn, _ *bufio.Reader, _ <-chan struct{}) {
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n") // and close without notice
	})
	p := newTestPublisher(t, Config{URL: "http://" + address})
	confirmations := 0
	for range 20 {
		err := one(t.Context(), p, letter())
		if postrider.ClassOf(err) == postrider.ClassPermanent {
			t.Fatalf("got %v", err)
		}
		if err == nil {
			confirmations++
		}
	}
	if int(requests.Load()) < confirmations || confirmations == 0 {
		t.Errorf("%d confirmations of %d requests", confirmations, requests.Load())
	}
}

// TestBodyIsTakenBack lets an endpoint answer before it has read the body: the publisher must no
// longer read the payload, which the caller owns again. The race detector reports it otherwise.
func TestBodyIsTakenBack(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, status(413, ""))
	p := newTestPublisher(t, Config{URL: "http://" + address})
	m := letter()
	m.Payload = make([]byte, 8<<20)
	for range 5 {
		if err := one(t.Context(), p, m); err == nil {
			t.Error("accepted")
		}
		clear(m.Payload)
	}
}

// TestCancelled cancels a running Publish: started requests have an unknown outcome, the others
// were never sent.
func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var underWay atomic.Int32
	address, _ := serve(t, func(_ net.Conn, _ *bufio.Reader, over <-chan struct{}) {
		if underWay.Add(1) == 2 {
			cancel()
		}
		<-over
	})
	p := newTestPublisher(t, Config{URL: "http://" + address, Parallel: 2, Timeout: time.Minute})
	var msgs []postrider.Message
	for i := range 50 {
		m := letter()
		m.AggregateID = fmt.Sprint(i)
		msgs = append(msgs, m)
	}
	classes := make(map[postrider.Class]int)
	for _, err := range p.Publish(ctx, msgs) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		classes[postrider.ClassOf(err)]++
	}
	if classes[postrider.ClassUnknown] != 2 || classes[postrider.ClassUnavailable] != 48 {
		t.Errorf("got %v, want 2 unknown and the others unavailable", classes)
	}
}

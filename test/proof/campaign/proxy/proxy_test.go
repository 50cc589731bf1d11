package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/proxy"
)

// server records what it receives, and sends it back.
type server struct {
	net.Listener
	mu  sync.Mutex
	got []byte
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := &server{Listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		s.mu.Lock()
		s.got = append(s.got, buf[:n]...)
		s.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := conn.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (s *server) has() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.got)
}

func listen(t *testing.T, target string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Listen("127.0.0.1:0", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	got := make([]byte, len(text))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v; want %q", got[:n], err, text)
	}
}

// nothing checks that neither a byte nor the end of the connection arrives.
func nothing(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("read %d bytes, %v; want silence", n, err)
	}
}

func expectReset(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("the connection ended with %v; want a reset", err)
	}
}

// expectRefusal checks that a new connection is reset, before or after the client has noticed that
// it is connected.
func expectRefusal(t *testing.T, p *proxy.Proxy) {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err == nil {
		defer conn.Close()
		expectReset(t, conn)
	} else if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 5 s", what)
		}
	}
}

func TestPass(t *testing.T) {
	p := listen(t, newServer(t).Addr().String())
	conn := dial(t, p)
	text := string(bytes.Repeat([]byte("0123456789"), 100_000))
	go func() { _, _ = io.WriteString(conn, text) }()
	expect(t, conn, text)
	if requests, answers := p.Passed(); requests != 1_000_000 || answers != 1_000_000 {
		t.Errorf("%d and %d bytes have passed", requests, answers)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the end of the server: %v", err)
	}
	until(t, "the connection is forgotten", func() bool { return p.Connections() == 0 })
}

func TestReset(t *testing.T) {
	p := listen(t, newServer(t).Addr().String())
	conn := dial(t, p)
	send(t, conn, "a")
	expect(t, conn, "a")
	if n := p.Reset(); n != 1 {
		t.Errorf("%d connections were reset", n)
	}
	expectReset(t, conn)
	send(t, dial(t, p), "b")
}

func TestRetarget(t *testing.T) {
	first, second := newServer(t), newServer(t)
	p := listen(t, first.Addr().String())
	old := dial(t, p)
	send(t, old, "a")
	expect(t, old, "a")
	p.Retarget(second.Addr().String())
	send(t, old, "b")
	expect(t, old, "b")
	fresh := dial(t, p)
	send(t, fresh, "c")
	expect(t, fresh, "c")
	if first.has() != "ab" || second.has() != "c" {
		t.Errorf("the servers have got %q and %q", first.has(), second.has())
	}
}

func TestRefuse(t *testing.T) {
	p := listen(t, newServer(t).Addr().String())
	running := dial(t, p)
	send(t, running, "a")
	expect(t, running, "a")
	p.Behave(proxy.Behaviour{Refuse: true})
	expectRefusal(t, p)
	send(t, running, "b")
	expect(t, running, "b")
	gone := newServer(t)
	p.Behave(proxy.Behaviour{})
	p.Retarget(gone.Addr().String())
	_ = gone.Close()
	expectRefusal(t, p)
}

// TestSilent checks that nothing passes and no connection is closed, and that everything arrives
// afterwards, once and in order.
func TestSilent(t *testing.T) {
	s := newServer(t)
	p := listen(t, s.Addr().String())
	conn := dial(t, p)
	send(t, conn, "a")
	expect(t, conn, "a")
	p.Behave(proxy.Behaviour{Silent: true})
	send(t, conn, "b")
	fresh := dial(t, p)
	send(t, fresh, "c")
	nothing(t, conn)
	nothing(t, fresh)
	if s.has() != "a" {
		t.Errorf("the server has got %q", s.has())
	}
	p.Behave(proxy.Behaviour{})
	expect(t, conn, "b")
	expect(t, fresh, "c")
}

// TestMute checks that requests arrive and responses do not, and that no connection continues after
// a dropped response.
func TestMute(t *testing.T) {
	s := newServer(t)
	p := listen(t, s.Addr().String())
	conn, idle := dial(t, p), dial(t, p)
	send(t, idle, "i")
	expect(t, idle, "i")
	p.Behave(proxy.Behaviour{Mute: true})
	send(t, conn, "COMMIT")
	until(t, "the request arrives", func() bool { return s.has() == "iCOMMIT" })
	nothing(t, conn)
	p.Behave(proxy.Behaviour{})
	expectReset(t, conn)
	send(t, idle, "j")
	expect(t, idle, "j")
}

// TestDelay checks that everything is delayed, and that consecutive chunks are delayed only once.
func TestDelay(t *testing.T) {
	p := listen(t, newServer(t).Addr().String())
	conn := dial(t, p)
	p.Behave(proxy.Behaviour{Delay: 100 * time.Millisecond})
	begin := time.Now()
	for range 20 {
		send(t, conn, "x")
		time.Sleep(5 * time.Millisecond)
	}
	expect(t, conn, "xxxxxxxxxxxxxxxxxxxx")
	if took := time.Since(begin); took < 200*time.Millisecond || took > 2*time.Second {
		t.Errorf("20 pieces took %v", took)
	}
}

func TestCutAfter(t *testing.T) {
	for range 20 {
		s := newServer(t)
		p := listen(t, s.Addr().String())
		p.Behave(proxy.Behaviour{CutAfter: 100})
		conn := dial(t, p)
		_, _ = conn.Write(make([]byte, 150))
		expectReset(t, conn)
		until(t, "it is cut after 100 to 200 bytes", func() bool {
			requests, answers := p.Passed()
			return requests+answers >= 100 && requests+answers <= 200
		})
	}
}

func TestSlice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := listen(t, l.Addr().String())
	p.Behave(proxy.Behaviour{Slice: 1})
	conn := dial(t, p)
	send(t, conn, "0123456789")
	arrived, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer arrived.Close()
	expect(t, arrived, "0123456789")
}

// TestClose checks that a proxy closes with connections in every state.
func TestClose(t *testing.T) {
	p := listen(t, newServer(t).Addr().String())
	conn := dial(t, p)
	send(t, conn, "a")
	expect(t, conn, "a")
	p.Behave(proxy.Behaviour{Silent: true})
	send(t, conn, "b")
	dial(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	expectReset(t, conn)
}

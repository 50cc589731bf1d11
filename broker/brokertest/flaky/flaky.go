// Package flaky simulates a bad network between a client and a server: a TCP proxy that can cut
// connections, refuse new ones, hold the client's requests, swallow the server's answers, and add
// delay.
package flaky

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards connections to a server, subject to simulated faults. Its methods are safe for
// concurrent use.
type Proxy struct {
	listener net.Listener
	target   string

	down  atomic.Bool  // refuse connections
	deaf  atomic.Bool  // swallow the server's data
	delay atomic.Int64 // before each chunk from the server

	mu    sync.Mutex
	conns map[*net.TCPConn]bool // both ends of all connections, and whether data for them was swallowed
	held  chan struct{}         // closed when requests may go on; nil if they are not held
	run   sync.WaitGroup
	over  chan struct{} // closed at the end
}

// Listen returns a proxy for the server at target, a host and port. It is closed at the end of the
// test.
func Listen(t testing.TB, target string) *Proxy {
	t.Helper()
	return ListenOn(t, "127.0.0.1:0", target)
}

// ListenOn is like Listen, at a given address, for servers that must know the address of their
// clients' connections in advance.
func ListenOn(t testing.TB, address, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, conns: make(map[*net.TCPConn]bool), over: make(chan struct{})}
	p.run.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host and port that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut resets all connections and refuses new ones until [Proxy.Restore].
func (p *Proxy) Cut() {
	p.down.Store(true)
	p.Reset()
}

// Restore ends all faults. Connections on which data was swallowed are reset, because what follows
// on them is meaningless.
func (p *Proxy) Restore() {
	p.down.Store(false)
	p.deaf.Store(false)
	p.delay.Store(0)
	p.reset(false)
}

// Reset resets all connections. New ones are accepted.
func (p *Proxy) Reset() { p.reset(true) }

func (p *Proxy) reset(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, spoilt := range p.conns {
		if all || spoilt {
			_ = c.SetLinger(0) // so that closing sends RST
			_ = c.Close()
		}
	}
}

// SwallowAnswers discards all data from the server until [Proxy.Restore].
func (p *Proxy) SwallowAnswers() { p.deaf.Store(true) }

// HoldRequests keeps all data from clients, as a network would that is slow, and returns a function
// that forwards it, even from clients that have disconnected since.
func (p *Proxy) HoldRequests() (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held == held {
			p.held = nil
		}
		close(held)
	})
}

// Delay delays each chunk of data from the server by d.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		client := c.(*net.TCPConn)
		if p.down.Load() {
			_ = client.SetLinger(0)
			_ = client.Close()
			continue
		}
		p.run.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	c, err := net.DialTimeout("tcp", p.target, 5*time.Second)
	if err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	server := c.(*net.TCPConn)
	if !p.track(client, server) {
		return
	}
	defer p.untrack(client, server)
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(requests{server, p}, client)
		_ = server.CloseWrite()
	})
	p.answers(client, server)
	_ = client.Close()
	_ = server.Close()
	up.Wait()
}

// requests writes to a server what its client has sent, unless requests are held.
type requests struct {
	server *net.TCPConn
	p      *Proxy
}

func (r requests) Write(b []byte) (int, error) {
	r.p.mu.Lock()
	held := r.p.held
	r.p.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.p.over:
		}
	}
	return r.server.Write(b)
}

func (p *Proxy) answers(client, server *net.TCPConn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if n > 0 && p.swallows(client) {
			continue
		}
		if n > 0 {
			time.Sleep(time.Duration(p.delay.Load()))
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// swallows reports whether the data just received from the server must be discarded.
func (p *Proxy) swallows(client *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf.Load() {
		p.conns[client] = true
	}
	return p.conns[client]
}

func (p *Proxy) track(conns ...*net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.isOver() || p.down.Load() {
			_ = c.Close()
		} else {
			p.conns[c] = false
		}
	}
	return !p.isOver() && !p.down.Load()
}

func (p *Proxy) isOver() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

func (p *Proxy) untrack(conns ...*net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	close(p.over)
	p.mu.Unlock()
	p.Reset()
	p.run.Wait()
}

// Package proxy simulates a bad network between clients and a server: a TCP proxy whose behavior
// can be changed while connections run through it.
package proxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Behaviour is what a proxy does to traffic. The zero value is a good network.
type Behaviour struct {
	// Refuse resets new connections at once.
	Refuse bool
	// Silent holds back all traffic without closing connections. It arrives afterwards, as TCP
	// would retransmit it.
	Silent bool
	// Mute forwards requests and drops all responses. Connections that have lost a response are
	// reset afterwards.
	Mute bool
	// Delay delays everything, in each direction.
	Delay time.Duration
	// CutAfter resets each connection after it has forwarded this many bytes, or up to twice as
	// many, in both directions together. 0: never.
	CutAfter int64
	// Slice is the largest number of bytes that are forwarded at a time. 0: unlimited.
	Slice int
}

// Proxy forwards connections to a target. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	ended    sync.WaitGroup

	setting atomic.Pointer[setting]
	sent    atomic.Int64 // bytes sent to the server
	told    atomic.Int64 // bytes sent to clients

	mu     sync.Mutex
	target string
	links  map[*link]struct{}
	closed bool
}

// setting is a behavior that applies until changed is closed.
type setting struct {
	Behaviour
	changed chan struct{}
}

// Listen starts a proxy. An address with the port 0 selects a free one. A proxy with an empty
// target refuses connections.
func Listen(address, target string) (*Proxy, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, links: make(map[*link]struct{})}
	p.setting.Store(&setting{changed: make(chan struct{})})
	p.ended.Go(p.accept)
	return p, nil
}

// Address returns the address for clients.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Target returns the address that connections are forwarded to.
func (p *Proxy) Target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Retarget forwards new connections to another server. Existing ones stay with the old server until
// they are reset.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Behave changes the behavior for all traffic from now on, also on existing connections.
func (p *Proxy) Behave(b Behaviour) {
	before := p.setting.Swap(&setting{b, make(chan struct{})})
	close(before.changed)
	if !b.Mute {
		for _, l := range p.all() {
			if l.spoiled.Load() {
				l.reset()
			}
		}
	}
}

// Behaviour returns the current behavior.
func (p *Proxy) Behaviour() Behaviour { return p.setting.Load().Behaviour }

// Reset resets all connections, on both sides, and returns their number.
func (p *Proxy) Reset() int {
	all := p.all()
	for _, l := range all {
		l.reset()
	}
	return len(all)
}

// Passed returns how many bytes were sent to the server and to clients.
func (p *Proxy) Passed() (requests, answers int64) { return p.sent.Load(), p.told.Load() }

// Connections returns the number of connections.
func (p *Proxy) Connections() int { return len(p.all()) }

// Close breaks all connections and closes the proxy.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Reset()
	p.ended.Wait()
	return err
}

func (p *Proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	return all
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // such as no file descriptors
			continue
		}
		l := newLink(p, conn.(*net.TCPConn))
		p.mu.Lock()
		closed := p.closed
		if !closed {
			p.links[l] = struct{}{}
		}
		p.mu.Unlock()
		if closed {
			l.reset()
			continue
		}
		p.ended.Go(l.run)
	}
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

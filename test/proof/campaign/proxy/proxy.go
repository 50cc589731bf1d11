// Package proxy is a bad network between clients and a server: a TCP proxy that can be told to misbehave while connections run through it.
package proxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Behaviour is what a proxy does to what passes. The zero value is a good network.
type Behaviour struct {
	// Refuse breaks new connections at once.
	Refuse bool
	// Silent lets nothing pass, and nobody is told. What was sent meanwhile arrives when it ends, as TCP would repeat it.
	Silent bool
	// Mute lets requests pass and swallows all answers. Connections that have lost an answer are reset when it ends.
	Mute bool
	// Delay is how much later everything arrives, in each direction.
	Delay time.Duration
	// CutAfter resets each connection after it has carried so many bytes, or up to twice as many, both directions counted. 0: never.
	CutAfter int64
	// Slice is the largest number of bytes that are passed on at a time. 0: as they come.
	Slice int
}

// Proxy passes connections on to a target. Its methods may be called from any goroutine.
type Proxy struct {
	listener net.Listener
	ended    sync.WaitGroup

	setting atomic.Pointer[setting]
	sent    atomic.Int64 // bytes given to the server
	told    atomic.Int64 // bytes given to clients

	mu     sync.Mutex
	target string
	links  map[*link]struct{}
	closed bool
}

// setting is a behaviour that counts until changed is closed.
type setting struct {
	Behaviour
	changed chan struct{}
}

// Listen begins to pass connections on. An address with the port 0 gets any free one. An empty target refuses.
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

// Address is where clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Target is where connections are passed on to.
func (p *Proxy) Target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target
}

// Retarget passes new connections on to another server. Those that run stay with the old one until they are reset.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Behave changes what is done to everything that passes from now on, also on connections that run.
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

// Behaviour is the present one.
func (p *Proxy) Behaviour() Behaviour { return p.setting.Load().Behaviour }

// Reset breaks all connections, so that both sides see a reset, and returns how many there were.
func (p *Proxy) Reset() int {
	all := p.all()
	for _, l := range all {
		l.reset()
	}
	return len(all)
}

// Passed is how many bytes were given to the server and to clients.
func (p *Proxy) Passed() (requests, answers int64) { return p.sent.Load(), p.told.Load() }

// Connections is how many there are.
func (p *Proxy) Connections() int { return len(p.all()) }

// Close breaks all connections and ends the proxy.
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
			time.Sleep(10 * time.Millisecond) // such as no more file descriptors
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

package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is a client's connection and the corresponding connection to the server.
type link struct {
	proxy  *Proxy
	client *net.TCPConn

	// spoiled reports that a response was dropped. Nothing after it may pass.
	spoiled atomic.Bool
	cut     cut

	mu     sync.Mutex
	server *net.TCPConn
	done   chan struct{} // closed when the link is broken
	broken bool
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	return &link{proxy: p, client: client, done: make(chan struct{})}
}

// reset resets both connections.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return
	}
	l.broken = true
	close(l.done)
	abort(l.client)
	if l.server != nil {
		abort(l.server)
	}
}

// abort closes a connection so that the other side sees a reset.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

func (l *link) run() {
	defer l.proxy.forget(l)
	defer l.reset()
	for {
		s := l.proxy.setting.Load()
		if s.Refuse {
			return
		}
		if !s.Silent {
			break
		}
		if !l.wait(s.changed) {
			return
		}
	}
	target := l.proxy.Target()
	if target == "" {
		return
	}
	conn, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	l.mu.Lock()
	if l.broken {
		l.mu.Unlock()
		abort(conn.(*net.TCPConn))
		return
	}
	l.server = conn.(*net.TCPConn)
	l.mu.Unlock()

	var both sync.WaitGroup
	both.Go(func() { l.carry(l.client, l.server, &l.proxy.sent, false) })
	both.Go(func() { l.carry(l.server, l.client, &l.proxy.told, true) })
	both.Wait()
}

func (l *link) wait(changed <-chan struct{}) bool {
	select {
	case <-changed:
		return true
	case <-l.done:
		return false
	}
}

// piece is a chunk of data, and when it may arrive. The last one of a direction is empty.
type piece struct {
	bytes []byte
	due   time.Time
}

// inTransit limits the chunks in flight in a direction; at the limit nothing more is read, as with
// a full network buffer.
const inTransit = 64

// carry forwards one direction until it ends. Reading and writing are separate, so that a delay
// does not limit the throughput.
func (l *link) carry(from, to *net.TCPConn, count *atomic.Int64, answers bool) {
	pieces := make(chan piece, inTransit)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(pieces)
		for {
			buf := make([]byte, 16<<10)
			n, err := from.Read(buf)
			due := time.Now().Add(l.proxy.setting.Load().Delay)
			if n > 0 && !l.hand(pieces, piece{buf[:n], due}) {
				return
			}
			if errors.Is(err, io.EOF) {
				l.hand(pieces, piece{nil, due})
				return
			}
			if err != nil {
				l.reset()
				return
			}
		}
	})
	for p := range pieces {
		if !l.pass(p, to, count, answers) {
			l.reset()
			break
		}
	}
	reading.Wait()
}

func (l *link) hand(pieces chan<- piece, p piece) bool {
	select {
	case pieces <- p:
		return true
	case <-l.done:
		return false
	}
}

// pass forwards a chunk when it is due. It reports whether the link is still intact.
func (l *link) pass(p piece, to *net.TCPConn, count *atomic.Int64, answers bool) bool {
	if late := time.Until(p.due); late > 0 {
		timer := time.NewTimer(late)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.done:
			return false
		}
	}
	for {
		s := l.proxy.setting.Load()
		switch {
		case s.Silent:
			if !l.wait(s.changed) {
				return false
			}
		case answers && s.Mute:
			l.spoiled.Store(true)
			return true
		case l.spoiled.Load() && !s.Mute:
			return false
		case len(p.bytes) == 0:
			return to.CloseWrite() == nil
		default:
			rest, ok := l.write(p.bytes, to, count, s)
			if !ok || len(rest) == 0 {
				return ok
			}
			p.bytes = rest // the behavior changed in the middle
		}
	}
}

// write forwards bytes as the setting requires, until the setting changes.
func (l *link) write(bytes []byte, to *net.TCPConn, count *atomic.Int64, s *setting) (rest []byte, ok bool) {
	for len(bytes) > 0 {
		n := len(bytes)
		if s.Slice > 0 {
			n = min(n, s.Slice)
		}
		allowed := l.cut.allow(s, n)
		count.Add(int64(allowed)) // before the receiver can have seen them
		if _, err := to.Write(bytes[:allowed]); err != nil || allowed < n {
			return nil, false
		}
		bytes = bytes[n:]
		if l.proxy.setting.Load() != s {
			return bytes, true
		}
	}
	return nil, true
}

// cut counts what a link may still forward under a setting.
type cut struct {
	mu      sync.Mutex
	setting *setting
	left    int64
}

// allow returns how many of n bytes may pass.
func (c *cut) allow(s *setting, n int) int {
	if s.CutAfter <= 0 {
		return n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.setting != s {
		c.setting, c.left = s, s.CutAfter+rand.Int64N(s.CutAfter+1)
	}
	allowed := min(int64(n), c.left)
	c.left -= allowed
	return int(allowed)
}

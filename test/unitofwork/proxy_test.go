package unitofwork_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// fault is what happens to one COMMIT.
type fault int

const (
	none         fault = iota
	cutBefore          // the server does not receive it
	cutAfter           // the server receives it; the client is cut off at once
	cutAnswer          // the server has responded; after a delay the client is cut off instead of getting the response
	cutThenSend        // the client is cut off; the server receives it after a delay
	cutForgotten       // the client is cut off; the server neither receives it nor learns that the client is gone
	faults
)

// proxy forwards between clients and a PostgreSQL server, and reads the clients' messages.
type proxy struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	commit  func() (fault, time.Duration)
	refuse  func() bool
	conns   map[net.Conn]bool
	counts  [faults]int // of COMMITs
	stopped bool
	run     sync.WaitGroup
}

func listen(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: l, target: target, conns: make(map[net.Conn]bool),
		commit: func() (fault, time.Duration) { return none, 0 },
		refuse: func() bool { return false },
	}
	p.run.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

// onCommit sets the function that decides about each COMMIT, and the length of delays. It may be
// called concurrently.
func (p *proxy) onCommit(f func() (fault, time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commit = f
}

// onQuestion sets the function that decides whether a query for the outcome of a transaction cuts
// the connection. It may be called concurrently.
func (p *proxy) onQuestion(f func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = f
}

func (p *proxy) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.stopped = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.run.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.run.Go(func() {
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = client.Close()
				return
			}
			if p.track(client, server) {
				p.serve(client.(*net.TCPConn), server.(*net.TCPConn))
			}
			p.forget(client, server)
		})
	}
}

func (p *proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.stopped
}

func (p *proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// serve forwards whole client messages until the connection ends or one is a COMMIT with a fault.
func (p *proxy) serve(client, server *net.TCPConn) {
	answers := &answers{client: client, server: server, ready: make(chan struct{}, 1)}
	var back sync.WaitGroup
	back.Go(answers.forward)
	defer back.Wait()
	typed := false // the first message has no type
	for {
		message, err := readMessage(client, typed)
		typed = true
		if err != nil {
			_ = server.CloseWrite()
			return
		}
		p.mu.Lock()
		commit, refuse := p.commit, p.refuse
		p.mu.Unlock()
		what, while := none, time.Duration(0)
		switch {
		case says(message, "commit"):
			what, while = commit()
			p.mu.Lock()
			p.counts[what]++
			p.mu.Unlock()
		case asks(message, "pg_xact_status") && refuse():
			what = cutBefore
		}
		switch what {
		case none:
			if _, err := server.Write(message); err != nil {
				return
			}
			continue
		case cutBefore:
			reset(client)
			reset(server)
		case cutAfter:
			answers.silence()
			_, _ = server.Write(message)
			reset(client)
			_ = server.CloseWrite()
		case cutAnswer:
			answers.silence()
			_, _ = server.Write(message)
			<-answers.ready
			time.Sleep(while)
			reset(client)
			reset(server)
		case cutThenSend:
			answers.silence()
			reset(client)
			time.Sleep(while)
			_, _ = server.Write(message)
			_ = server.CloseWrite()
		case cutForgotten:
			answers.silence()
			reset(client) // the other direction waits until the server closes
		case faults: // the number of faults
		}
		return
	}
}

// reset closes with RST, so that a client that waits for a response learns at once that none will
// come.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// answers are the server's responses on one connection.
type answers struct {
	client, server *net.TCPConn
	mu             sync.Mutex
	silent         bool
	ready          chan struct{} // something was held back, or nothing more will come
}

func (a *answers) silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.silent = true
}

func (a *answers) forward() {
	buf := make([]byte, 64<<10)
	for {
		n, err := a.server.Read(buf)
		a.mu.Lock()
		silent := a.silent
		a.mu.Unlock()
		if silent && (n > 0 || err != nil) {
			select {
			case a.ready <- struct{}{}:
			default:
			}
		} else if n > 0 {
			if _, werr := a.client.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			if !silent {
				_ = a.client.Close()
			}
			return
		}
	}
}

func readMessage(from io.Reader, typed bool) ([]byte, error) {
	head := make([]byte, 4, 5)
	if typed {
		head = head[:5]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[len(head)-4:]))
	if size < 4 || size > 1<<28 {
		return nil, errors.New("not the protocol")
	}
	message := make([]byte, len(head)-4+size)
	copy(message, head)
	_, err := io.ReadFull(from, message[len(head):])
	return message, err
}

// says reports whether a message is a statement, in the simple or the extended protocol.
func says(message []byte, statement string) bool {
	switch {
	case len(message) < 6:
		return false
	case message[0] == 'Q':
		return bytes.EqualFold(bytes.TrimRight(message[5:], "\x00; "), []byte(statement))
	case message[0] == 'P':
		parts := bytes.SplitN(message[5:], []byte{0}, 3)
		return len(parts) == 3 && bytes.EqualFold(parts[1], []byte(statement))
	}
	return false
}

// asks reports whether a message is a statement that contains a word.
func asks(message []byte, word string) bool {
	return len(message) > 5 && (message[0] == 'Q' || message[0] == 'P') && bytes.Contains(message, []byte(word))
}

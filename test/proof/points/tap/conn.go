package tap

import (
	"net"
	"sync"
	"syscall"
)

// Protocol parses a client's traffic into calls, and matches the server's responses to them. Each
// connection has its own.
type Protocol interface {
	// Cut returns the calls in what the client sends next, in order and complete except for an
	// incomplete end, which is part of the result of the next Cut. Hear is not called concurrently.
	Cut(sent []byte) []Call
	// Hear processes what the server has sent.
	Hear(received []byte)
}

// Call is a call that a client sends.
type Call struct {
	// Name identifies the call. A call without a name, such as the login, is not a point.
	Name  string
	Bytes []byte
	// Nudge is sent after the call to get its response at once, where the client itself would first
	// send more.
	Nudge []byte
	// Answered reports whether the response has been received.
	Answered func() bool
}

// conn is a client's connection.
type conn struct {
	net.Conn
	gate *Gate

	reading sync.Mutex // held over a read, so that responses are processed in order

	mu       sync.Mutex // guards the following fields
	protocol Protocol
	answered func() bool // of the call whose response is affected; otherwise nil
	end      func()      // called then
	deaf     bool        // the connection was cut for the caller
}

// Write sends what passes the gate.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	calls := c.protocol.Cut(p)
	c.mu.Unlock()
	var out []byte
	sent := 0
	flush := func() error {
		n, err := c.Conn.Write(out)
		sent += n
		out = out[:0]
		return err
	}
	for i := range calls {
		call := &calls[i]
		switch way := c.gate.pass(call.Name); way {
		case "":
			out = append(out, call.Bytes...)
		case Delay:
			if err := flush(); err != nil {
				return sent, err
			}
			freeze()
			out = append(out, call.Bytes...)
		case KillBefore:
			_ = flush()
			die()
		case Error:
			_ = flush()
			_ = c.Conn.Close()
			return sent, &net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}
		default:
			out = append(append(out, call.Bytes...), call.Nudge...)
			c.sever(way, call.Answered)
			if err := flush(); err != nil {
				return sent, err
			}
			c.drain()
			return len(p), nil // it was sent; Read reports the outcome
		}
	}
	if err := flush(); err != nil {
		return sent, err
	}
	return len(p), nil
}

// sever ends the process or the connection when a response arrives.
func (c *conn) sever(way Way, answered func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered = answered
	c.end = func() {
		if way == KillAfter {
			die()
		}
		c.deaf = true
		_ = c.Conn.Close()
	}
}

// drain reads until the connection has ended.
func (c *conn) drain() {
	p := make([]byte, 1<<16)
	for {
		if _, err := c.Read(p); err != nil {
			return
		}
	}
}

// Read reads and processes responses. The reader of the response that triggers the fault also
// executes it.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.protocol.Hear(p[:n])
	if c.answered != nil && !c.deaf && c.answered() {
		c.end()
	}
	if c.deaf {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return n, err
}

package tap

import (
	"net"
	"sync"
	"syscall"
)

// Protocol knows where the calls of a client begin and end, and which of the server's words are the answer to which. There is one
// for each connection.
type Protocol interface {
	// Cut returns the calls in what the client sends next, in order and with nothing left out but an incomplete end, which is
	// a part of what the next Cut returns. Nobody hears anything meanwhile.
	Cut(sent []byte) []Call
	// Hear takes note of what the server has sent.
	Hear(received []byte)
}

// Call is something that a client sends.
type Call struct {
	// Name is what it is known by. What has none is no point, such as the login.
	Name  string
	Bytes []byte
	// Nudge is sent behind it to have the answer at once, where the client itself would send more before.
	Nudge []byte
	// Answered reports whether the answer has been heard.
	Answered func() bool
}

// conn is a client's connection.
type conn struct {
	net.Conn
	gate *Gate

	reading sync.Mutex // held over a read, so that everything is heard in its order

	mu       sync.Mutex // guards what follows
	protocol Protocol
	answered func() bool // of the call that goes wrong behind its answer; otherwise nil
	end      func()      // what happens then
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
			return len(p), nil // it was sent; what has become of it is for Read to say
		}
	}
	if err := flush(); err != nil {
		return sent, err
	}
	return len(p), nil
}

// sever makes the process or the connection end with an answer.
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

// Read hears what the server says. Whoever reads the answer after which all ends sees to that.
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

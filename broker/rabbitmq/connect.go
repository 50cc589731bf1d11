package rabbitmq

import (
	"cmp"
	"context"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	patience       = 10 * time.Second // with a handshake, one write to the socket, the next heartbeat
	goodbyeTimeout = 2 * time.Second  // for the server's answer to a polite goodbye
)

// socket is a connection to the server on which a write that does not get on breaks the connection. Without it the
// client waits for ever in a write to a server that has stopped reading, which is how RabbitMQ slows publishers down.
type socket struct {
	net.Conn
	patience time.Duration
}

// Write hangs up when it fails: the client does not always notice the error of a write, but that of its reads it does.
func (s socket) Write(b []byte) (int, error) {
	_ = s.SetWriteDeadline(time.Now().Add(s.patience)) // fails only if the write does
	n, err := s.Conn.Write(b)
	if err != nil {
		_ = s.Close()
	}
	return n, err
}

// connection can be ended without asking the server, which may not be listening.
type connection struct {
	*amqp.Connection
	socket socket
}

// connect opens a connection, whose name is for those who look at the server.
func (c *Config) connect(ctx context.Context, name string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var s socket
	stop := func() bool { return true }
	config := amqp.Config{
		Heartbeat:  patience, // unless the URL says heartbeat=
		Properties: amqp.NewConnectionProperties(),
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := c.Dial(ctx, network, address)
			if err == nil {
				stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			}
			s = socket{conn, patience}
			return s, err
		},
	}
	config.Properties.SetClientConnectionName(name)
	if c.TLS != nil {
		config.TLSClientConfig = c.TLS.Clone() // the client writes into it
	}
	conn, err := amqp.DialConfig(c.URL, config)
	if stop() && err == nil {
		return &connection{conn, s}, nil
	}
	if s.Conn != nil {
		_ = s.Close()
	}
	return nil, cmp.Or(ctx.Err(), err)
}

func (c *connection) hangUp() { _ = c.socket.Close() }

// Close ends the connection: politely, or when the server does not answer, by hanging up.
func (c *connection) Close() {
	timer := time.AfterFunc(goodbyeTimeout, c.hangUp)
	defer timer.Stop()
	_ = c.Connection.Close() // it is closed afterwards in any case
	c.hangUp()
}

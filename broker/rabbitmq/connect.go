package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/broker"
)

const (
	ioTimeout      = 10 * time.Second // for a handshake, one write to the socket, the next heartbeat
	goodbyeTimeout = 2 * time.Second  // for the server's answer to a graceful close
)

// socket is a connection that breaks if a write makes no progress. Without this, the client waits
// forever in a write to a server that has stopped reading, which is how RabbitMQ applies back
// pressure to publishers.
type socket struct {
	net.Conn
	timeout time.Duration
}

// Write closes the connection on failure: the client does not always notice a write error, but it
// notices a read error.
func (s socket) Write(b []byte) (int, error) {
	_ = s.SetWriteDeadline(time.Now().Add(s.timeout)) // fails only if the write does
	n, err := s.Conn.Write(b)
	if err != nil {
		_ = s.Close()
	}
	return n, err
}

// connection is a connection that can be closed without waiting for the server.
type connection struct {
	*amqp.Connection
	socket socket
}

// connect opens a connection to one of the hosts, under a name that operators see on the server. It
// starts at a random host, so that connections spread over the cluster.
func (c *Config) connect(ctx context.Context, name string) (conn *connection, err error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	n := len(c.addresses)
	for i, first := 0, rand.IntN(n); i < n && conn == nil && ctx.Err() == nil; i++ {
		conn, err = c.connectTo(ctx, ioTimeout/time.Duration(n), c.addresses[(first+i)%n], name)
	}
	if conn == nil {
		return nil, cmp.Or(err, ctx.Err())
	}
	return conn, nil
}

// connectTo opens a connection to one host.
func (c *Config) connectTo(ctx context.Context, within time.Duration, address, name string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var s socket
	stop := func() bool { return true }
	config := c.Client
	if config.Heartbeat == 0 {
		config.Heartbeat = ioTimeout // unless the URL contains heartbeat=
	}
	config.Properties = amqp.NewConnectionProperties()
	maps.Copy(config.Properties, c.Client.Properties)
	config.Properties.SetClientConnectionName(name)
	config.Dial = func(network, address string) (net.Conn, error) {
		conn, err := c.Dial(ctx, network, address)
		if err == nil {
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		s = socket{conn, ioTimeout}
		return s, err
	}
	if c.TLS != nil {
		config.TLSClientConfig = c.TLS.Clone() // the client modifies it
	}
	switch {
	case c.SASL == "external":
		config.SASL = []amqp.Authentication{&amqp.ExternalAuth{}}
	case c.PasswordFile != "":
		password, err := broker.ReadSecret("password_file", c.PasswordFile)
		if err != nil {
			return nil, err
		}
		u, err := amqp.ParseURI(address)
		if err != nil {
			return nil, err
		}
		config.SASL = []amqp.Authentication{&amqp.PlainAuth{Username: u.Username, Password: password}}
	}
	conn, err := amqp.DialConfig(address, config)
	if stop() && err == nil {
		return &connection{conn, s}, nil
	}
	if s.Conn != nil {
		_ = s.Close()
	}
	// With TLS 1.3 the server checks the certificate after the handshake, and its answer can be
	// lost with the connection.
	if c.hasCertificate() && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		err = fmt.Errorf("%w: the server may have refused the client's certificate", err)
	}
	return nil, cmp.Or(ctx.Err(), err)
}

func (c *connection) hangUp() { _ = c.socket.Close() }

// Close closes the connection gracefully, or abruptly if the server does not answer.
func (c *connection) Close() {
	timer := time.AfterFunc(goodbyeTimeout, c.hangUp)
	defer timer.Stop()
	_ = c.Connection.Close() // the connection is closed in any case
	c.hangUp()
}

package flaky

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Switchboard returns the address of a server that forwards connections to any address. It lets a
// [Proxy], which forwards to a single address, stand in front of a cluster. Clients dial with
// [Through].
func Switchboard(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var run sync.WaitGroup
	t.Cleanup(run.Wait)
	t.Cleanup(func() { _ = l.Close() })
	run.Go(func() {
		for {
			caller, err := l.Accept()
			if err != nil {
				return
			}
			run.Go(func() { connect(caller) })
		}
	})
	return l.Addr().String()
}

// connect reads the target address and copies data until one side closes.
func connect(caller net.Conn) {
	in := bufio.NewReader(caller)
	called, err := in.ReadString('\n')
	if err != nil {
		_ = caller.Close()
		return
	}
	server, err := net.Dial("tcp", strings.TrimSpace(called))
	if err != nil {
		_ = caller.Close()
		return
	}
	var run sync.WaitGroup
	for _, way := range []struct {
		to   net.Conn
		from io.Reader
	}{{server, in}, {caller, server}} {
		run.Go(func() {
			_, _ = io.Copy(way.to, way.from)
			_, _ = caller.Close(), server.Close()
		})
	}
	run.Wait()
}

// Through returns a function that dials through a switchboard, or a proxy of one.
func Through(switchboard string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, switchboard)
		if err == nil {
			_, err = io.WriteString(conn, address+"\n")
		}
		return conn, err
	}
}

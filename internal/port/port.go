// Package port finds addresses for servers that must be told beforehand where to listen.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// The ports are below those that systems give to outgoing connections, so that nobody gets one between now and the moment when its
// server listens.
const lowest, ports = 10_000, 5_000

// turn is where this process goes on. Each process starts somewhere else: others look for ports, too.
var turn atomic.Uint32

func init() { turn.Store(rand.Uint32N(ports)) }

// Free returns an address of this machine where nobody listens, and that nobody else in this process has got.
func Free() (string, error) {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", lowest+turn.Add(1)%ports)); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", err
}

// For is Free for a test.
func For(t testing.TB) string {
	t.Helper()
	address, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

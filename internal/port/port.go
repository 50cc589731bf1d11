// Package port finds free addresses for servers that must be configured with one before they start.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// The range is below the ephemeral ports of operating systems, so that no outgoing connection takes
// a port before its server listens.
const lowest, ports = 10_000, 5_000

// turn is the next port to try. Each process starts at a random one, because other processes search
// too.
var turn atomic.Uint32

func init() { turn.Store(rand.Uint32N(ports)) }

// Free returns an address of this machine on which nothing listens, and which it has not returned
// before in this process.
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

// For is like Free, and fails the test on an error.
func For(t testing.TB) string {
	t.Helper()
	address, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

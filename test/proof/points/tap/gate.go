// Package tap sits between a client and its server, identifies each call on the connection, and can
// inject a fault at one of them: the process dies before or after it, the call fails, its response
// is lost, or the process is suspended before it.
package tap

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// Way is a kind of fault of a call.
type Way string

const (
	// KillBefore kills the process before the call is sent.
	KillBefore Way = "kill before"
	// KillAfter kills the process after the response was read from the socket, and before the
	// caller gets it.
	KillAfter Way = "kill after"
	// Error cuts the connection before the call is sent.
	Error Way = "error"
	// Unheard cuts the connection after the call was executed: its response is lost.
	Unheard Way = "unknown outcome"
	// Delay suspends the process before the call is sent, until it gets SIGCONT.
	Delay Way = "delay"
)

// Ways lists all kinds of faults.
var Ways = []Way{KillBefore, KillAfter, Error, Unheard, Delay}

// Gate counts the calls of a process and injects a fault at one of them. The n-th call of a name is
// the point "name n".
type Gate struct {
	// Point is where the fault is injected, and Way its kind. An empty point means no fault.
	Point string
	Way   Way
	// Events receives a line for every point, before anything else happens: "point NAME N" and, at
	// the fault, "strike".
	Events io.Writer
	// Limit returns how many calls of a name are points: the number of calls that repeat as long as
	// a process lives depends on time.
	Limit func(name string) int

	mu     sync.Mutex
	counts map[string]int
}

// Dial returns a function that opens connections whose calls pass the gate.
func (g *Gate) Dial(speak func() Protocol) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, gate: g, protocol: speak()}, nil
	}
}

// pass counts a call. It returns the kind of fault, which is empty for nearly all calls.
func (g *Gate) pass(name string) Way {
	if name == "" {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts == nil {
		g.counts = make(map[string]int)
	}
	g.counts[name]++
	n := g.counts[name]
	if n > g.Limit(name) {
		return ""
	}
	point := fmt.Sprintf("%s %d", name, n)
	g.say("point " + point)
	if point != g.Point {
		return ""
	}
	g.say("strike")
	return g.Way
}

func (g *Gate) say(line string) { _, _ = io.WriteString(g.Events, line+"\n") }

// die kills the process like kill -9.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal arrives
}

// freeze suspends the process, this thread first, until SIGCONT.
func freeze() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
}

// Package tap sits between a client and its server, knows each call that goes over the connection, and can have one of them go
// wrong: the process dies before or after it, it fails, its answer is lost, or the process stands still before it.
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

// Way is how a call goes wrong.
type Way string

const (
	// KillBefore kills the process before the call is sent.
	KillBefore Way = "kill before"
	// KillAfter kills the process when the answer has been read from the socket, and before the caller gets it.
	KillAfter Way = "kill after"
	// Error cuts the connection before the call is sent.
	Error Way = "error"
	// Unheard cuts the connection when the call was executed: its answer is lost.
	Unheard Way = "unknown outcome"
	// Delay stops the process before the call is sent, until somebody lets it go on (SIGCONT).
	Delay Way = "delay"
)

// Ways are all of them.
var Ways = []Way{KillBefore, KillAfter, Error, Unheard, Delay}

// Gate counts the calls of a process and lets one of them go wrong. The n-th call of a name is the point "name n".
type Gate struct {
	// Point is where it goes wrong, and Way how. An empty point is nowhere.
	Point string
	Way   Way
	// Events is told of every point in a line, before anything else: "point NAME N" and, where it goes wrong, "strike".
	Events io.Writer
	// Limit is up to which number calls of a name are points: those that are repeated for as long as a process lives are as
	// many as there was time.
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

// pass counts a call. It returns how it goes wrong, which is empty for nearly all.
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

// die ends the process as kill -9 does.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it arrives
}

// freeze stops the process, this thread first, until it is told to go on.
func freeze() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
}

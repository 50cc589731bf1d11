package points

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/test/proof/points/tap"
)

const (
	// lease is short, so that a dead relay or consumer is replaced soon; longLease is for cases in
	// which none should be replaced.
	lease     = time.Second
	longLease = 20 * time.Second
	// pause is how long a process is suspended that is delayed past its lease.
	pause = 1800 * time.Millisecond
	// timeout bounds every wait.
	timeout = 2 * time.Minute
)

// scenario is some work, with conditions that must hold afterwards whatever fault is injected.
type scenario struct {
	name string
	// open prepares one case.
	open func(t *testing.T, name string) *world
	// part configures the processes of a case.
	part func(w *world) part
	// before runs before the process with the fault starts. Then comes work, which returns when
	// that process has nothing more to do or, if it is dead, when the healthy process is done that
	// starts right after the fault. after uses only the healthy one.
	before, work, after func(w *world)
	// alone is set if two concurrent processes do not keep the order: then the healthy one waits
	// for the end of the first, unless that is suspended.
	alone bool
	// check checks the final conditions. Way is empty if no fault was injected.
	check func(w *world, way tap.Way)
}

// play runs a case: a scenario with one kind of fault at one point, or without a fault if there is
// none. It returns how often the process with the fault has passed each name, and the same for the
// healthy one.
func (s *scenario) play(t *testing.T, point string, way tap.Way) (first, second map[string]int) {
	w := s.open(t, caseName())
	w.t = t
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	w.ctx, w.lease = ctx, longLease
	if way == tap.KillBefore || way == tap.KillAfter || way == tap.Delay {
		w.lease = lease
	}
	if s.before != nil {
		s.before(w)
	}
	told := s.part(w)
	sound := told
	sound.Relay.Lease = longLease
	told.Point, told.Way = point, way
	w.first = start(t, told)
	sound.Joins = way != tap.KillBefore && way != tap.KillAfter // the first one continues
	w.replace = sync.OnceFunc(func() {
		healthy := start(t, sound)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.second = healthy
	})
	var replaced sync.WaitGroup
	replaced.Go(func() {
		select {
		case <-w.first.struck:
		case <-w.first.done:
			return
		}
		if s.alone && way != tap.Delay {
			<-w.first.done
		}
		w.replace()
		if way == tap.Delay {
			time.Sleep(pause)
			_ = w.first.cmd.Process.Signal(syscall.SIGCONT)
		}
	})
	defer func() {
		if t.Failed() {
			w.tell()
		}
	}()
	s.work(w)
	err := w.first.stop(timeout)
	replaced.Wait()
	switch struck := w.first.hasStruck(); {
	case point != "" && !struck:
		t.Fatalf("the point was not hit; hit were\n%s", list(w.first.passed()))
	case struck && (way == tap.KillBefore || way == tap.KillAfter) != w.first.killed():
		t.Errorf("the process ended with %v", err)
	case !struck && err != nil:
		t.Errorf("the process ended with %v", err)
	}
	w.replace()
	if s.after != nil {
		s.after(w)
	}
	if err := w.second.stop(timeout); err != nil {
		t.Errorf("the healthy process ended with %v", err)
	}
	s.check(w, way)
	return w.first.passed(), w.second.passed()
}

// tell logs the output of the processes.
func (w *world) tell() {
	w.t.Logf("the first process has said:\n%s", w.first.said())
	if w.relay != nil {
		w.t.Logf("the relay has said:\n%s", w.relay.said())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.second != nil {
		w.t.Logf("the healthy process has said:\n%s", w.second.said())
	}
}

// until waits for a condition.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for !holds() {
		if w.ctx.Err() != nil {
			w.t.Fatalf("this has not come about: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// untilSeen waits until the first process or, after its fault, the healthy one has passed a name
// the given number of times.
func (w *world) untilSeen(name string, times int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s %d", name, times), func() bool {
		if w.first.passed()[name] >= times {
			return true
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.second != nil && w.second.passed()[name] >= times
	})
}

func list(points map[string]int) string {
	var b strings.Builder
	for name, n := range points {
		fmt.Fprintf(&b, "  %s %d\n", name, n)
	}
	return b.String()
}

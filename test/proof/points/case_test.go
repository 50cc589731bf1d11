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
	// lease is after how long a relay or a consumer that is not heard of is replaced, and longLease where none is to be.
	lease     = time.Second
	longLease = 20 * time.Second
	// pause is how long a process stands still that is delayed past its lease.
	pause = 1800 * time.Millisecond
	// patience is how long anything may take.
	patience = 2 * time.Minute
)

// scenario is some work, and what holds when it is done, whatever has gone wrong meanwhile.
type scenario struct {
	name string
	// open makes the place for one case.
	open func(t *testing.T, name string) *world
	// part is what the processes of a case are told.
	part func(w *world) part
	// before is done before the process begins in which something goes wrong. Then comes work, which returns when that process
	// has nothing more to do, or, where it is dead, the healthy one that is started as soon as something has gone wrong. After is
	// for the healthy one alone.
	before, work, after func(w *world)
	// alone is set where two processes at work do not keep the order: then the healthy one waits for the end of the first, unless
	// that stands still.
	alone bool
	// check says what must hold in the end. Way is empty if nothing has gone wrong.
	check func(w *world, way tap.Way)
}

// play plays a case: a scenario in which something goes wrong in one way at one point, or nothing if there is none. It returns what
// the process has passed in which that was to happen, and what the healthy one has.
func (s *scenario) play(t *testing.T, point string, way tap.Way) (first, second map[string]int) {
	w := s.open(t, caseName())
	w.t = t
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	sound.Joins = way != tap.KillBefore && way != tap.KillAfter // the first one goes on
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
	err := w.first.stop(patience)
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
	if err := w.second.stop(patience); err != nil {
		t.Errorf("the healthy process ended with %v", err)
	}
	s.check(w, way)
	return w.first.passed(), w.second.passed()
}

// tell shows what the processes have said.
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

// untilSeen waits until the first process, or the healthy one when the first has gone wrong, has passed a name so many times.
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

package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Fleet is a number of relay processes that serve one feed. Each place in it is filled by one
// process after another.
type Fleet struct {
	t   *testing.T
	cfg Config

	mu      sync.Mutex
	places  []*process
	started int
	faulted map[string]bool // processes that were killed or suspended
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts size relay processes, which end with the test at the latest.
func Start(t *testing.T, cfg Config, size int) *Fleet {
	t.Helper()
	f := &Fleet{t: t, cfg: cfg, places: make([]*process, size), faulted: map[string]bool{}}
	for place := range size {
		f.launch(place)
	}
	t.Cleanup(func() {
		for place := range size {
			f.Kill(place)
		}
	})
	return f
}

func (f *Fleet) launch(place int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started++
	cfg := f.cfg
	cfg.Process = fmt.Sprintf("relay%d.%d", place, f.started)
	text, err := json.Marshal(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	p := &process{name: cfg.Process, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	f.places[place] = p
}

func (f *Fleet) at(place int) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.places[place]
}

func (f *Fleet) fault(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faulted[p.name] = true
}

// Kill kills a process without any chance to clean up.
func (f *Fleet) Kill(place int) {
	p := f.at(place)
	f.fault(p)
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// Ended reports whether the process at a place has ended, and records that as a fault.
func (f *Fleet) Ended(place int) bool {
	p := f.at(place)
	select {
	case <-p.done:
		f.fault(p)
		return true
	default:
		return false
	}
}

// Restart starts a new process at the place of one that has ended.
func (f *Fleet) Restart(place int) { f.launch(place) }

// Pause suspends a process for some time, and then resumes it.
func (f *Fleet) Pause(place int, d time.Duration) {
	p := f.at(place)
	f.fault(p)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.t.Context().Done():
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// Stop stops a process, and fails the test if it does not end cleanly in time.
func (f *Fleet) Stop(place int) {
	f.t.Helper()
	p := f.at(place)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		if p.err != nil {
			f.t.Errorf("%s: %v", p.name, p.err)
		}
	case <-time.After(20 * time.Second):
		f.t.Errorf("%s does not stop", p.name)
		f.Kill(place)
	}
}

// StopAll stops every process.
func (f *Fleet) StopAll() {
	f.t.Helper()
	var all sync.WaitGroup
	for place := range f.places {
		all.Go(func() { f.Stop(place) })
	}
	all.Wait()
}

// Faulted reports whether a process was killed or suspended.
func (f *Fleet) Faulted(process string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faulted[process]
}

// Name returns the name of the process at a place.
func (f *Fleet) Name(place int) string { return f.at(place).name }

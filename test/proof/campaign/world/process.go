package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Role is what a process is for. Processes are compared by it, and faults find their victims by it.
type Role string

// The roles.
const (
	Relay    Role = "relay"
	Producer Role = "producer"
	Consumer Role = "consumer"
	Receiver Role = "receiver"
)

// Program is what to run.
type Program struct {
	Name string // unique
	Role Role
	Path string
	Args []string
	Env  []string // beside that of this process, from which POSTRIDER_*, OTEL_* and PG* are left out
	// Metrics is the address of its Prometheus figures, for goroutines: http://127.0.0.1:8710/metrics. Defaults to none.
	Metrics string

	inside string // a network namespace
	token  string // for Metrics
}

// Process is a place that is taken by one process of a program after another. All its methods may be called from any goroutine.
// A process that ends by itself is noted (Options.Note) and started again after a second, as a service manager would.
type Process struct {
	world *World

	act sync.Mutex // one change at a time

	mu      sync.Mutex
	program Program
	cmd     *exec.Cmd
	done    chan struct{} // closed when cmd has ended
	err     error         // how cmd has ended
	wanted  bool          // it is meant to run
	paused  bool
	ends    int
}

const restartAfter = time.Second

// Spawn starts a program. Its output goes to NAME.log in Options.Dir.
func (w *World) Spawn(program Program) (*Process, error) {
	p := &Process{world: w, program: program}
	w.mu.Lock()
	taken := slices.ContainsFunc(w.processes, func(other *Process) bool { return other.Name() == program.Name })
	if !taken {
		w.processes = append(w.processes, p)
	}
	w.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("there is a process %s already", program.Name)
	}
	return p, p.Start()
}

// Processes are those of a role, in the order of their start.
func (w *World) Processes(role Role) []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*Process
	for _, p := range w.processes {
		if p.Role() == role {
			all = append(all, p)
		}
	}
	return all
}

// Process finds one by its name; nil if there is none.
func (w *World) Process(name string) *Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// Name is that of the program.
func (p *Process) Name() string { return p.program.Name }

// Role is that of the program.
func (p *Process) Role() Role { return p.program.Role }

// PID is the number of the process that runs now, or 0.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Paused reports whether it is held by [Process.Pause].
func (p *Process) Paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// Ends is how often it has ended by itself.
func (p *Process) Ends() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ends
}

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Become sets what the next Start runs: another binary, with more variables of the environment.
func (p *Process) Become(path string, env ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program.Path, p.program.Env = path, env
}

// Path is the binary that the next Start runs.
func (p *Process) Path() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.program.Path
}

// Start starts the program if it does not run.
func (p *Process) Start() error {
	p.act.Lock()
	defer p.act.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	if p.running() {
		return nil
	}
	return p.launch()
}

func (p *Process) launch() error {
	out, err := os.OpenFile(filepath.Join(p.world.Options.Dir, p.Name()+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	argv := append([]string{p.program.Path}, p.program.Args...)
	if p.program.Role == Producer {
		argv = patient(argv)
	}
	if p.program.inside != "" {
		// It becomes the program, under the same number. (ip netns exec would give it its own copy of all mounts too, and no disk image could
		// be unmounted as long as it runs.)
		argv = append([]string{"nsenter", "--net=/run/netns/" + p.program.inside}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(environment(), p.program.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the harness, which ends them in order
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.Name(), err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err, p.paused = cmd, done, nil, false
	go p.watch(cmd, done)
	return p.world.remember(cmd.Process.Pid)
}

// watch waits for the end of a process, and starts another one if nobody wanted it to end.
func (p *Process) watch(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	p.world.forget(cmd.Process.Pid)
	p.mu.Lock()
	p.err = err
	close(done)
	unexpected := p.wanted
	if unexpected {
		p.ends++
	}
	p.mu.Unlock()
	if !unexpected {
		return
	}
	said := "exit status 0"
	if err != nil {
		said = err.Error()
	}
	p.world.note(p.Name(), "ended by itself: "+said)
	time.AfterFunc(restartAfter, func() {
		p.act.Lock()
		defer p.act.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.wanted && !p.running() {
			if err := p.launch(); err != nil {
				p.world.note(p.Name(), err.Error())
			}
		}
	})
}

// Kill ends it at once and leaves it ended until [Process.Start].
func (p *Process) Kill() error {
	p.act.Lock()
	defer p.act.Unlock()
	_, err := p.end(context.Background(), syscall.SIGKILL)
	return err
}

// Stop asks it to end, and waits. It is killed when ctx ends, and that is an error. An exit status other than 0 is an error too.
func (p *Process) Stop(ctx context.Context) error {
	p.act.Lock()
	defer p.act.Unlock()
	p.mu.Lock()
	paused := p.paused
	p.mu.Unlock()
	if paused {
		_ = p.signal(syscall.SIGCONT)
	}
	exit, err := p.end(ctx, syscall.SIGTERM)
	if err != nil {
		_, killed := p.end(context.Background(), syscall.SIGKILL)
		return errors.Join(fmt.Errorf("%s does not stop: %w", p.Name(), err), killed)
	}
	if exit != nil {
		return fmt.Errorf("%s: %w", p.Name(), exit)
	}
	return nil
}

// end sends a signal and waits for the end. It returns how the process has ended.
func (p *Process) end(ctx context.Context, signal syscall.Signal) (exit, err error) {
	p.mu.Lock()
	p.wanted = false
	running, cmd, done := p.running(), p.cmd, p.done
	p.mu.Unlock()
	if !running {
		return nil, nil
	}
	if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return nil, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = false
	return p.err, nil
}

// Pause lets it do nothing until [Process.Resume].
func (p *Process) Pause() error { return p.hold(syscall.SIGSTOP, true) }

// Resume lets it go on.
func (p *Process) Resume() error { return p.hold(syscall.SIGCONT, false) }

func (p *Process) hold(signal syscall.Signal, paused bool) error {
	p.act.Lock()
	defer p.act.Unlock()
	if err := p.signal(signal); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	return nil
}

func (p *Process) signal(signal syscall.Signal) error {
	p.mu.Lock()
	running, cmd := p.running(), p.cmd
	p.mu.Unlock()
	if !running {
		return fmt.Errorf("%s does not run", p.Name())
	}
	return syscall.Kill(-cmd.Process.Pid, signal)
}

// note tells the campaign of something that nobody asked for.
func (w *World) note(target, detail string) {
	if w.Options.Note != nil {
		w.Options.Note(record.Event{At: time.Now(), Phase: record.Note, Target: target, Detail: detail})
	}
}

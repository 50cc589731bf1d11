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

// Role is the purpose of a process. Samples are compared by role, and faults choose their victims
// by it.
type Role string

// The roles.
const (
	Relay    Role = "relay"
	Producer Role = "producer"
	Consumer Role = "consumer"
	Receiver Role = "receiver"
	Guest    Role = "guest" // a consumer that comes and goes
)

// Program describes a program to run.
type Program struct {
	Name string // unique
	Role Role
	Path string
	Args []string
	Env  []string // added to that of this process without POSTRIDER_*, OTEL_* and PG*
	Idle bool     // Spawn does not start it
	// Metrics is the address of its Prometheus metrics, for goroutines:
	// http://127.0.0.1:8710/metrics. Defaults to none.
	Metrics string

	inside string // a network namespace
	token  string // for Metrics
}

// Process is a place that is filled by one process of a program after another. It is safe for
// concurrent use. A process that exits by itself is reported (Options.Note) and restarted after a
// second, as by a service manager.
type Process struct {
	world *World

	act sync.Mutex // serializes changes

	mu      sync.Mutex
	program Program
	cmd     *exec.Cmd
	done    chan struct{} // closed when cmd has ended
	err     error         // how cmd has ended
	wanted  bool          // it is supposed to run
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
	if program.Idle {
		return p, nil
	}
	return p, p.Start()
}

// Processes returns the processes of a role, in the order of their start.
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

// Process returns the process with a name, or nil.
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

// Name returns the name of the program.
func (p *Process) Name() string { return p.program.Name }

// Role returns the role of the program.
func (p *Process) Role() Role { return p.program.Role }

// PID returns the ID of the current process, or 0.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Paused reports whether it is suspended by [Process.Pause].
func (p *Process) Paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// Ends returns how often it has exited by itself.
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

// Become sets what the next Start runs: another binary, with additional environment variables.
func (p *Process) Become(path string, env ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.program.Path, p.program.Env = path, env
}

// Path returns the binary that the next Start runs.
func (p *Process) Path() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.program.Path
}

// Start starts the program if it is not running.
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
		argv = relaxed(argv)
	}
	if p.program.inside != "" {
		// nsenter executes the program under the same process ID. (ip netns exec would also give it
		// a private copy of all mounts, and no disk image could be unmounted while it runs.)
		argv = append([]string{"nsenter", "--net=/run/netns/" + p.program.inside}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(environment(), p.program.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the harness, which stops them in order
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.Name(), err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err, p.paused = cmd, done, nil, false
	go p.watch(cmd, done)
	return p.world.remember(cmd.Process.Pid)
}

// watch waits for the end of a process, and restarts it if the end was not intended.
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

// Kill kills it and does not restart it until [Process.Start].
func (p *Process) Kill() error {
	p.act.Lock()
	defer p.act.Unlock()
	_, err := p.end(context.Background(), syscall.SIGKILL)
	return err
}

// Stop stops it and waits. When ctx ends it is killed, and Stop returns an error; an exit status
// other than 0 is an error too.
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

// Pause suspends it until [Process.Resume].
func (p *Process) Pause() error { return p.hold(syscall.SIGSTOP, true) }

// Resume resumes it.
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

// note reports an unplanned event to the campaign.
func (w *World) note(target, detail string) {
	if w.Options.Note != nil {
		w.Options.Note(record.Event{At: time.Now(), Phase: record.Note, Target: target, Detail: detail})
	}
}

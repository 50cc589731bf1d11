package stage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Start starts those of the processes that do not run.
func (s *Stage) Start(names ...string) error {
	env, err := s.Environment()
	if err != nil {
		return err
	}
	for _, name := range names {
		if s.Processes[name].Alive() {
			continue
		}
		program, args, err := s.program(name)
		if err != nil {
			return err
		}
		p, err := launch(program, args, env, s.Log(name))
		if err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
		s.Processes[name] = p
		if err := s.save(); err != nil { // save at once: a process that is not in the file is never ended
			return err
		}
	}
	return nil
}

// Kill kills processes at the same moment, as a crash would.
func (s *Stage) Kill(ctx context.Context, names ...string) error {
	for _, name := range names {
		if p := s.Processes[name]; p.Alive() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, s.Processes[name].end(ctx, syscall.SIGKILL))
	}
	return errors.Join(errs...)
}

// Freeze stops processes until they are killed or get SIGCONT.
func (s *Stage) Freeze(names ...string) error {
	for _, name := range names {
		p := s.Processes[name]
		if !p.Alive() {
			return fmt.Errorf("%s does not run", name)
		}
		if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	return nil
}

// End terminates processes cleanly, in reverse order of their start. It kills those that do not end
// in time.
func (s *Stage) End(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range slices.Backward(names) {
		patient, cancel := context.WithTimeout(ctx, 15*time.Second)
		if err := s.Processes[name].end(patient, syscall.SIGTERM); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err), s.Kill(ctx, name))
		}
		cancel()
	}
	return errors.Join(errs...)
}

// Missing returns the names of processes that should run and do not.
func (s *Stage) Missing() []string {
	return slices.DeleteFunc(s.All(), func(name string) bool { return s.Processes[name].Alive() })
}

// Ready waits until all processes run and all health checks succeed.
func (s *Stage) Ready(ctx context.Context) error {
	return Until(ctx, func() error {
		if missing := s.Missing(); len(missing) > 0 {
			return fmt.Errorf("%s %w; %s ends with: %s", strings.Join(missing, ", "), errGone, s.Log(missing[0]), s.lastWords(missing[0]))
		}
		for _, address := range []string{s.Settings.Pages + "/healthz", s.Settings.Paydesk + "/healthz", s.Health + "/readyz"} {
			if err := healthy(ctx, "http://"+address); err != nil {
				return err
			}
		}
		return nil
	})
}

// lastWords returns the last lines of a process's log.
func (s *Stage) lastWords(name string) string {
	text, err := os.ReadFile(s.Log(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-2):], "\n")
}

func healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	return nil
}

// Command runs one of the programs, as an operator would, and returns its output.
func (s *Stage) Command(ctx context.Context, program string, args ...string) (string, error) {
	env, err := s.Environment()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out), nil
}

// Up starts the whole service and waits until it is ready.
func (s *Stage) Up(ctx context.Context) error {
	// Start the network first, because the migration also creates the queues.
	if err := s.Start(Network); err != nil {
		return err
	}
	if err := Until(ctx, func() error { return s.Migrate(ctx) }); err != nil {
		return err
	}
	if err := s.Start(s.All()...); err != nil {
		return err
	}
	return s.Ready(ctx)
}

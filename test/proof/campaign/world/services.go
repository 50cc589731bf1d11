package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// services runs dev/services, which installs, starts and stops servers.
type services struct {
	script string
	base   string // the folder with their data
}

// findServices uses the environment, or else searches the parent folders.
func findServices() (*services, error) {
	script := os.Getenv("POSTRIDER_SERVICES")
	if script == "" {
		root, err := Root()
		if err != nil {
			return nil, err
		}
		script = filepath.Join(root, "dev", "services")
	}
	base := os.Getenv("POSTRIDER_SERVICES_DIR")
	if base == "" {
		base = filepath.Join(filepath.Dir(filepath.Dir(script)), ".services")
	}
	return &services{script, base}, nil
}

// Root returns the root of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("this is not the repository of Postrider: run it there")
		}
	}
	return "", err
}

// run runs the script with additional environment variables.
func (s *services) run(ctx context.Context, env []string, args ...string) error {
	argv, server := append([]string{s.script}, args...), args[len(args)-1]
	database := strings.HasPrefix(server, "postgres")
	if database {
		argv = relaxed(argv)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(append(os.Environ(), "POSTRIDER_SERVICES_DIR="+s.base), env...)
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the campaign, which heals what it has begun
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("dev/services %s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	if cluster, instance, ok := strings.Cut(server, "cluster@"); ok {
		for n := 1; n <= 3; n++ {
			hurrySession(s.pid(fmt.Sprintf("%scluster%d@%s", cluster, n, instance)))
		}
	} else if !database {
		hurrySession(s.pid(server))
	}
	return nil
}

func (s *services) dir(name string) string { return filepath.Join(s.base, name) }

// address returns the address of a server. word selects an additional port, or is empty.
func (s *services) address(name, word string) (string, error) {
	file := "port"
	if word != "" {
		file += "." + word
	}
	port, err := os.ReadFile(filepath.Join(s.dir(name), file))
	return "127.0.0.1:" + strings.TrimSpace(string(port)), err
}

// pid returns the ID of a server's first process, or 0 if it does not run. Another process may have
// got the ID since.
func (s *services) pid(name string) int {
	file, data := filepath.Join(s.dir(name), "pid"), ""
	if strings.HasPrefix(name, "postgres") {
		data = filepath.Join(s.dir(name), "data")
		file = filepath.Join(data, "postmaster.pid")
	}
	text, err := os.ReadFile(file)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) == 0 {
		return 0
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || !alive(pid) {
		return 0
	}
	proc := fmt.Sprintf("/proc/%d/", pid)
	switch {
	case data != "":
		if cwd, err := os.Readlink(proc + "cwd"); err != nil || cwd != data {
			return 0
		}
	case strings.HasPrefix(name, "pgbouncer"):
		if comm, err := os.ReadFile(proc + "comm"); err != nil || strings.TrimSpace(string(comm)) != "pgbouncer" {
			return 0
		}
	case len(fields) < 2 || born(pid) != fields[1]:
		return 0
	}
	return pid
}

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// state lists what must be removed if a harness was killed. It is stored beside the data of the
// servers.
type state struct {
	Processes map[int]string // by process ID, with the start time
}

// place returns the folder of a world in that of the servers: its state, and its disk images.
func place(base, instance string) string { return filepath.Join(base, "world-"+instance) }

func (w *World) remember(pid int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Processes[pid] = born(pid)
	return w.save()
}

func (w *World) forget(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.state.Processes, pid)
	_ = w.save() // a dead process in the list does no harm
}

func (w *World) save() error {
	return record.WriteJSON(filepath.Join(w.place, "state.json"), w.state)
}

// hold ensures that only one world of an instance runs at a time, until the file is closed, at the
// latest when the process ends.
func hold(base, instance string) (*os.File, error) {
	dir := place(base, instance)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("a world %q runs already: %w", instance, err), f.Close())
	}
	return f, nil
}

// Clean removes what a world of an instance has left behind: processes, servers with their data,
// mounts, network namespaces.
func Clean(ctx context.Context, instance string) error {
	s, err := findServices()
	if err != nil {
		return err
	}
	lock, err := hold(s.base, instance)
	if err != nil {
		return err
	}
	defer lock.Close()
	return clean(ctx, s, instance)
}

func clean(ctx context.Context, s *services, instance string) error {
	dir := place(s.base, instance)
	var left state
	if text, err := os.ReadFile(filepath.Join(dir, "state.json")); err == nil {
		if err := json.Unmarshal(text, &left); err != nil {
			return fmt.Errorf("%s/state.json: %w", dir, err)
		}
	}
	for pid, birth := range left.Processes {
		if birth != "" && born(pid) == birth {
			if err := killTree(ctx, pid); err != nil {
				return err
			}
		}
	}
	if err := removeNetwork(ctx, instance); err != nil {
		return err
	}
	if err := removeServers(ctx, s, instance); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == "lock" { // this process holds it
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// removeServers stops all servers of an instance, crashed or not, and removes their data and file
// systems.
func removeServers(ctx context.Context, s *services, instance string) error {
	entries, err := os.ReadDir(s.base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, of, ok := strings.Cut(e.Name(), "@")
		if !ok || of != instance && of != instance+spare {
			continue
		}
		if err := killTree(ctx, s.pid(e.Name())); err != nil {
			return err
		}
		if err := unmount(ctx, s.dir(e.Name())); err != nil {
			return err
		}
		if err := os.RemoveAll(s.dir(e.Name())); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// environment returns that of this process, without variables that would change a relay's
// configuration or the address of a database.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTRIDER_") && !strings.HasPrefix(v, "OTEL_") && !strings.HasPrefix(v, "PG") {
			env = append(env, v)
		}
	}
	return env
}

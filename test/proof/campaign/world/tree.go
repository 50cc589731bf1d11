package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stat returns the fields of /proc/PID/stat after the name: state, parent … It returns none for a
// zombie or a missing process.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name may contain spaces and parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return nil
	}
	return fields
}

func alive(pid int) bool { return pid > 0 && stat(pid) != nil }

// born returns the start time of a process in clock ticks, which distinguishes it from a later
// process with the same ID.
func born(pid int) string {
	fields := stat(pid)
	if fields == nil {
		return ""
	}
	return fields[19]
}

// tree returns a process and all its descendants.
func tree(pid int) []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fields := stat(child); fields != nil {
			parent, _ := strconv.Atoi(fields[1])
			children[parent] = append(children[parent], child)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// killTree kills a process and all its descendants. The parent is stopped first, so that it can
// neither start new ones nor react to the death of the old ones.
func killTree(ctx context.Context, pid int) error {
	if !alive(pid) {
		return nil
	}
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	all := tree(pid)
	for _, p := range all {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill %d: %w", p, err)
		}
	}
	return until(ctx, 5*time.Millisecond, func() error {
		for _, p := range all {
			if alive(p) {
				return fmt.Errorf("process %d survives kill -9", p)
			}
		}
		return nil
	})
}

// signalTree sends a signal to a process and all its descendants, the parent first.
func signalTree(pid int, signal syscall.Signal) error {
	for _, p := range tree(pid) {
		if err := syscall.Kill(p, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("%s to %d: %w", signal, p, err)
		}
	}
	return nil
}

// until polls ok until it returns no error. When ctx ends it returns the last error.
func until(ctx context.Context, every time.Duration, ok func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// within is until with a timeout.
func within(ctx context.Context, limit, every time.Duration, ok func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return until(ctx, every, ok)
}

package world

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// Sample samples all running processes: relays and those of [World.Spawn].
func (w *World) Sample(ctx context.Context) []record.Process {
	w.mu.Lock()
	processes := slices.Clone(w.processes)
	w.mu.Unlock()
	samples := make([]record.Process, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		all.Go(func() { samples[i] = p.sample(ctx) })
	}
	all.Wait()
	return slices.DeleteFunc(samples, func(s record.Process) bool { return s.PID == 0 })
}

func (p *Process) sample(ctx context.Context) record.Process {
	pid := p.PID()
	if pid == 0 {
		return record.Process{}
	}
	s := record.Process{Name: p.Name(), Role: string(p.Role()), PID: pid, RSS: resident(pid), Files: files(pid)}
	if p.program.Metrics != "" && !p.Paused() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s.Goroutines = goroutines(ctx, p.program.Metrics, p.program.token)
	}
	return s
}

func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

func files(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}

func goroutines(ctx context.Context, address, token string) int {
	body, err := get(ctx, address, token)
	if err != nil {
		return 0
	}
	defer body.Close()
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			n, _ := strconv.ParseFloat(value, 64)
			return int(n)
		}
	}
	return 0
}

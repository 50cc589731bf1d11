package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of processor time in /proc, on every architecture that Go runs on.
const ticksPerSecond = 100

// process holds figures of a process from /proc.
type process struct {
	name   string
	parent int
	used   int64 // processor time in ticks
	reaped int64 // that of ended children
}

// readProcess parses /proc/PID/stat.
func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	return parseStat(text)
}

func parseStat(text []byte) (process, error) {
	// The name is in parentheses, and may itself contain parentheses.
	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return process{}, fmt.Errorf("bench: /proc has a line without a name: %q", text)
	}
	fields := strings.Fields(string(text[shut+1:]))
	if len(fields) < 15 {
		return process{}, fmt.Errorf("bench: /proc has a line with %d fields", len(fields))
	}
	var numbers [5]int64
	for i, at := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		n, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("bench: /proc: %w", err)
		}
		numbers[i] = n
	}
	return process{string(text[open+1 : shut]), int(numbers[0]), numbers[1] + numbers[2], numbers[3] + numbers[4]}, nil
}

// familyTime returns the processor time of a process and its children, in ticks: the total
// including ended children, and that of each running child.
func familyTime(parent int) (total int64, each map[int]int64, err error) {
	head, err := readProcess(parent)
	if err != nil {
		return 0, nil, err
	}
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, nil, err
	}
	total, each = head.used+head.reaped, make(map[int]int64)
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		p, err := readProcess(pid)
		if err != nil || p.parent != parent {
			continue // it may have ended meanwhile
		}
		total += p.used
		each[pid] = p.used
	}
	return total, each, nil
}

// resident returns the resident memory of a process, in bytes.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("bench: /proc/%d/status does not tell the memory", pid)
}

// openFiles returns the number of open files and connections of a process.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}

// needsLinux returns an error if a scenario cannot run on this system.
func needsLinux() error {
	if _, err := readProcess(os.Getpid()); err != nil {
		return errors.Join(fmt.Errorf("bench: this scenario reads processor time in /proc, which %s does not have", runtime.GOOS), err)
	}
	return nil
}

// machineMemory returns the memory of the machine in bytes, or 0 if it is unknown.
func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 || fields[0] != "MemTotal:" {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(fields[1], 10, 64) // 0 if it cannot be read
	return kilobytes << 10
}

// processorName returns the model name of the processors.
func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

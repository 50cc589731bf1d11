package trial

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the kernel's unit of processor time, which is the same on all current Linux systems.
const tick = 10 * time.Millisecond

// process is one line of the kernel's process table.
type process struct {
	parent int
	own    time.Duration // processor time
	ended  time.Duration // of waited-for children that have ended
}

// processes reads the process table, without processes that end meanwhile.
func processes() (map[int]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	table := make(map[int]process, len(files))
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// The second field is a name in parentheses, which may contain any character.
		end := strings.LastIndexByte(string(content), ')')
		fields := strings.Fields(string(content[end+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || len(fields) < 15 {
			continue
		}
		number := func(field int) int { n, _ := strconv.Atoi(fields[field-3]); return n } // numbered as in proc(5)
		table[pid] = process{
			parent: number(4),
			own:    time.Duration(number(14)+number(15)) * tick,
			ended:  time.Duration(number(16)+number(17)) * tick,
		}
	}
	return table, err
}

// tree returns a process and all its descendants.
func tree(table map[int]process, root int) []int {
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		for pid, p := range table {
			if p.parent == pids[i] && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// spent returns the processor time of a process and all its descendants, including ended ones.
func spent(table map[int]process, root int) (sum time.Duration) {
	for _, pid := range tree(table, root) {
		sum += table[pid].own + table[pid].ended
	}
	return sum
}

// memory returns a value of /proc/PID/status, such as VmHWM, in bytes, or 0 if the process has
// ended.
func memory(pid int, figure string) int64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), figure+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

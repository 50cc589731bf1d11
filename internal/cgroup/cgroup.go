// Package cgroup returns the memory limit of the process's container, pod or service.
package cgroup

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// MemoryLimit returns the limit in bytes; math.MaxInt64 if there is none or it is unknown.
func MemoryLimit() int64 { return memoryLimit(os.DirFS("/")) }

// memoryLimit returns the lowest limit of the process's group and its parents. In a container that
// does not see its own path, the group is at the root.
func memoryLimit(root fs.FS) int64 {
	limit := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) < 3 {
			continue
		}
		var folder, file string
		switch parts[1] {
		case "": // version 2
			folder, file = "sys/fs/cgroup", "memory.max"
		case "memory":
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if text, err := fs.ReadFile(root, path.Join(folder, group, file)); err == nil {
				limit = min(limit, parse(string(text)))
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

func parse(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 {
		return math.MaxInt64 // "max"
	}
	return n
}

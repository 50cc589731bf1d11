package relay

import (
	"math"
	"runtime/debug"

	"github.com/postrider/postrider/internal/cgroup"
)

// mostMemory returns the maximum budget for messages: a quarter of the memory limit of the process.
// The rest is for the copies that publishers and the database driver make, and for garbage.
func mostMemory() int {
	return int(min(debug.SetMemoryLimit(-1)/4, cgroup.MemoryLimit()/4, math.MaxInt))
}

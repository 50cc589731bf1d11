package relay

import (
	"math"
	"runtime/debug"

	"github.com/postrider/postrider/internal/cgroup"
)

// mostMemory is the largest budget for messages: a quarter of what the process may have. The rest is for what publishers and the
// database's client make of them, and for garbage.
func mostMemory() int {
	return int(min(debug.SetMemoryLimit(-1)/4, cgroup.MemoryLimit()/4, math.MaxInt))
}

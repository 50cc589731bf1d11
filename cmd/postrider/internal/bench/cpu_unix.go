//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ownTime returns the processor time of this process.
func ownTime() (time.Duration, bool) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, false
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), true
}

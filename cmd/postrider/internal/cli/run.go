// Package cli implements the command line. Most files implement one subcommand.
package cli

import (
	"context"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/postrider/postrider/internal/cgroup"
)

// Main runs the command line of the process and returns its exit code. The version and commit are
// those of a release, or empty.
func Main(version, commit string) int {
	release.version, release.commit = version, commit
	return run()
}

// run stops the command cleanly at the first signal, and at once at the second.
func run() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := standardStreams()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		if s.watches {
			s.notef("stopping; interrupt again to stop immediately")
		}
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	limitMemory()
	return execute(ctx, s, os.Args[1:])
}

// limitMemory sets the soft memory limit to three quarters of the control group's limit, unless
// GOMEMLIMIT is set. The last quarter is for the program's pages and the kernel's socket buffers.
func limitMemory() {
	if limit := cgroup.MemoryLimit(); os.Getenv("GOMEMLIMIT") == "" && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
}

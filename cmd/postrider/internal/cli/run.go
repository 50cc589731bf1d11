// Package cli is the command line: one file a noun, such as feeds, messages and dead letters.
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

// Main runs the command line of the process and returns its exit code. version and commit are those of a release, or empty.
func Main(version, commit string) int {
	release.version, release.commit = version, commit
	return run()
}

// run lets the first signal end the command cleanly and the second one at once.
func run() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := standardStreams()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		if s.watches {
			s.notef("stopping; once more to stop at once")
		}
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	limitMemory()
	return execute(ctx, s, os.Args[1:])
}

// limitMemory has garbage collected before the process meets the limit of its control group, unless GOMEMLIMIT says when. A quarter
// is left for the pages of the program and what the system keeps for its connections.
func limitMemory() {
	if limit := cgroup.MemoryLimit(); os.Getenv("GOMEMLIMIT") == "" && limit < math.MaxInt64 {
		debug.SetMemoryLimit(limit / 4 * 3)
	}
}

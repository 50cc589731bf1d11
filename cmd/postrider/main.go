// Command postrider lays out the message log in a database, carries messages from it, and measures what that costs.
//
// "postrider help" lists its commands. Exit codes: 0 done, 1 failure, 2 wrong usage, 5 the schema is missing or has another
// version, 6 the database cannot be reached, 130 interrupted.
package main

import (
	"context"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/postrider/postrider/internal/cgroup"
)

func main() { os.Exit(run()) }

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

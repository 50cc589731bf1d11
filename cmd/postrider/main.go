// Command postrider lays out the message log in a database, carries messages from it, and measures what that costs.
//
// "postrider help" lists its commands. Exit codes: 0 done, 1 failure, 2 wrong usage, 5 the schema is missing or has another
// version, 6 the database cannot be reached, 130 interrupted.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
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
	return execute(ctx, s, os.Args[1:])
}

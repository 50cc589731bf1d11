// Command peers measures Postrider beside other ways to carry messages from PostgreSQL to a broker: on the same machine, on
// the same servers, with the same producers and the same receiver, in one run.
//
//	peers prepare --server URL                  sets what the database server needs; restart it then
//	peers run     --server URL --out FILE ...   makes the trials, and appends a line of JSON for each cell
//	peers table   [--page FILE] [--plots DIR] FILE...   makes tables and plots from such lines
//	peers list                                  names the peers, and tells how each is set up
//
// test/proof/peers/run fetches what is needed, starts the servers, and calls it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/postrider/postrider/test/proof/peers/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("one of prepare, run, table and list, please")
	}
	switch args[0] {
	case "prepare":
		return prepare(ctx, args[1:])
	case "run":
		return run(ctx, args[1:])
	case "table":
		return table(args[1:])
	case "list":
		return list()
	case "relay": // started by run, one process per trial
		return peer.Run(ctx, args[1])
	}
	return fmt.Errorf("%q is none of prepare, run, table and list", args[0])
}

func list() error {
	for _, p := range peer.All() {
		fmt.Println(p.Name())
		for _, s := range p.Settings(peer.Job{}) {
			fmt.Printf("    %s: %s", s.Name, s.Value)
			if s.Default != "" && s.Default != s.Value {
				fmt.Printf(" (default: %s)", s.Default)
			}
			fmt.Println()
		}
	}
	return nil
}

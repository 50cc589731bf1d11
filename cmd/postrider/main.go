// Command postrider creates the schema of a message log, runs relays, inspects and repairs
// messages, and runs benchmarks.
//
// "postrider help" lists the commands. Exit codes: 0 success, 1 failure, 2 wrong usage, 5 the
// schema is missing or has another version, 6 the database cannot be reached, 130 interrupted.
package main

import (
	"os"

	"github.com/postrider/postrider/cmd/postrider/internal/cli"
)

// version and commit are set by the linker in releases.
var version, commit string

func main() { os.Exit(cli.Main(version, commit)) }

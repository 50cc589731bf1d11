// Command write writes the Grafana dashboard to a file.
package main

import (
	"fmt"
	"os"

	"github.com/postrider/postrider/test/alerts/dashboard"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: write FILE")
		os.Exit(2)
	}
	text, err := dashboard.JSON()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "write:", err)
		os.Exit(1)
	}
}

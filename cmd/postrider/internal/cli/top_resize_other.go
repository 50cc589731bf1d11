//go:build !unix

package cli

import "os"

// notifyResize leaves it to the next refresh to find a new size where no signal tells it.
func notifyResize(chan<- os.Signal) {}

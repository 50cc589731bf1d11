//go:build !unix

package cli

import "os"

// notifyResize does nothing, because this system has no signal for it. The next refresh finds the
// new size.
func notifyResize(chan<- os.Signal) {}

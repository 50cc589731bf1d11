// Package process names the process for operators.
package process

import (
	"fmt"
	"os"
)

// Name returns the host's name and the process ID.
func Name() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

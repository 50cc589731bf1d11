//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package throwaway

import "syscall"

// dieWithParent is not supported here: the next start stops a leftover server.
func dieWithParent(*syscall.SysProcAttr) {}

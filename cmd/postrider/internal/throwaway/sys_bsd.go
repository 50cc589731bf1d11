//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package throwaway

import "syscall"

// dieWithParent cannot be had here: the next start stops what was left.
func dieWithParent(*syscall.SysProcAttr) {}

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package throwaway

import (
	"os"
	"syscall"
)

// stopSignals are the signals for PostgreSQL's "fast" and "immediate" shutdown, and SIGKILL.
var stopSignals = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL}

func supported() error { return nil }

func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func (a *account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setsid: true}
	if a.other {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	dieWithParent(attributes)
	return attributes
}

// endGroup interrupts a program and its children.
func endGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGINT) }

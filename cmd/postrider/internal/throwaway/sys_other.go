//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package throwaway

import (
	"errors"
	"os"
	"syscall"
)

var stopSignals = []os.Signal{os.Kill}

var errUnsupported = errors.New("starting a PostgreSQL is not supported on this system")

func supported() error { return errUnsupported }

func tryLock(*os.File) error { return errUnsupported }

func (a *account) attributes() *syscall.SysProcAttr { return nil }

func endGroup(p *os.Process) error { return p.Kill() }

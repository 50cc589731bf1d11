package bench

import "syscall"

// endWithParent stops a relay if the bench is killed.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }

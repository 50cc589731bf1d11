package throwaway

import "syscall"

// dieWithParent stops a server whose parent is killed. Elsewhere the next start does.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

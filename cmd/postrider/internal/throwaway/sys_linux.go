package throwaway

import "syscall"

// dieWithParent makes the kernel stop the server if its parent is killed. On other systems the next
// start does that.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

package world

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// urgency is the scheduling advantage of this process (with its proxies), brokers, relays and
// consumers over producers and the database. In production they have separate machines; on one
// machine that is too small, producers must wait, or brokers miss their own deadlines without any
// fault.
const urgency = 10

// hurry raises the priority of this process and its children, if permitted.
func hurry() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, -urgency)
		}
	}
	hurrySession(os.Getpid())
}

// hurrySession raises the priority of a process's session: Linux first divides its time among
// sessions, and each connection of PostgreSQL is one.
func hurrySession(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(-urgency)), 0)
}

// relaxed returns a command that runs without the raised priority.
func relaxed(argv []string) []string {
	if os.Geteuid() != 0 {
		return argv
	}
	return append([]string{"nice", "-n", strconv.Itoa(urgency)}, argv...)
}

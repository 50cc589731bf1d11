package world

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// urgency is how much sooner this process, with its proxies, and brokers, relays and consumers get a processor than those who bring the work and the
// database, which does it. They would have machines of their own; on one machine that is too small for all of it, the work has to wait,
// or brokers miss their own deadlines without any fault.
const urgency = 10

// hurry makes this process urgent, and with it what it starts. Without the right to, nothing is.
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

// hurrySession makes the session of a process urgent among all sessions: Linux first divides its time among these, and each connection of
// PostgreSQL is one.
func hurrySession(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(-urgency)), 0)
}

// patient is a command that is not urgent.
func patient(argv []string) []string {
	if os.Geteuid() != 0 {
		return argv
	}
	return append([]string{"nice", "-n", strconv.Itoa(urgency)}, argv...)
}

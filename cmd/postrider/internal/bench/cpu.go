package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// notSeen explains why the server's processor time is missing from a result.
const notSeen = "the server's processes cannot be seen from here: its processor time is left out"

// processorTime returns the processor time of a process with one thread. It reads the scheduler's
// nanoseconds, because the ticks in /proc/PID/stat are too coarse for a slice of a tenth of a
// second.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	return parseSchedstat(string(text))
}

func parseSchedstat(text string) (time.Duration, error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, fmt.Errorf("bench: /proc has a schedstat with %d fields", len(fields))
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("bench: /proc: %w", err)
	}
	return time.Duration(n), nil
}

// backendOf returns the process that serves a connection, or 0 if that process is not visible here.
// The process ID alone is not enough: on another machine, or behind a pooler, it may belong to
// another process. So backendOf checks that a query increases the processor time of the process.
func backendOf(ctx context.Context, conn *pgx.Conn) (pid int, err error) {
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return 0, err
	}
	p, err := readProcess(pid)
	if err != nil || p.name != "postgres" {
		return 0, nil //nolint:nilerr // the process is on another machine
	}
	before, err := processorTime(pid)
	if err != nil {
		return 0, nil //nolint:nilerr // a kernel without this file: nothing is seen
	}
	if _, err := conn.Exec(ctx, "SELECT count(*) FROM generate_series(1, 20000)"); err != nil {
		return 0, err
	}
	after, err := processorTime(pid)
	if err != nil || after-before < 100*time.Microsecond {
		return 0, nil //nolint:nilerr // gone, or another's
	}
	return pid, nil
}

// timeOf returns the total processor time of several processes.
func timeOf(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		used, err := processorTime(pid)
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

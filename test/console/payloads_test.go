package console

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/built"
)

// The log of TestBigPayloads: 200 MiB. If a list read payloads, the console's memory would grow by
// as much.
const (
	bigPayload  = 4 << 20
	bigMessages = 50
	bigDead     = 10

	consoleMayGrow = 10 << 20
	commandMayGrow = 32 << 20 // a new process varies by 10 MiB from run to run
)

// TestBigPayloads checks that lists report the sizes of payloads without reading them: with large
// payloads the console and "messages ls" need about as much memory as with small ones.
func TestBigPayloads(t *testing.T) {
	t.Parallel()
	db := newDatabase(t, "payloads")
	write := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(payload []byte) {
		t.Helper()
		write("DELETE FROM postrider.deferred")
		write("TRUNCATE postrider.messages")
		write(`INSERT INTO postrider.messages (type, key, payload) SELECT 'scan.stored', 'scan/' || i, $1 FROM generate_series(1, $2::int) i`, payload, bigMessages)
		write(`INSERT INTO postrider.deferred (feed, seq, shard, status, blocking, available_at, order_key, priority, id, type, key, schema_version, created_at,
				occurred_at, payload, last_error)
			SELECT 'default', m.seq, postrider.shard_of(m.key, 8), 'dead', false, 'infinity', m.key, 0, m.id, m.type, m.key, 1, m.created_at, m.created_at, m.payload, 'too large'
			FROM postrider.messages m ORDER BY m.seq LIMIT $1`, bigDead)
	}
	write("SELECT postrider.add_feed('test', '', 'default', true)")
	address := port.For(t)
	console := start(t, "console", "--dsn", db.dsn, "--listen", address)
	api := "http://" + address + "/api/v1/"
	eventually(t, "the console", func() error { return getJSON(api+"me", "", new(any)) })

	// look requests all lists repeatedly, and returns the peak memory of the console and of a
	// command.
	look := func(bytes int) (inConsole, inCommand int64) {
		t.Helper()
		forgetPeak(t, console.cmd.Process.Pid)
		for range 20 {
			for _, list := range []struct {
				path  string
				rows  int
				sizes bool // its rows have sizes
			}{
				{"messages?feed=default&limit=100", bigMessages, true}, {"messages?feed=default&status=dead&limit=100", bigDead, true},
				{"dead?limit=100", bigDead, false},
			} {
				eventually(t, list.path, func() error { // on a slow server a page may be short
					var page struct{ Items []struct{ Bytes int } }
					if err := getJSON(api+list.path, "", &page); err != nil {
						return err
					}
					if len(page.Items) != list.rows || list.sizes && page.Items[0].Bytes != bytes {
						return fmt.Errorf("%d rows, want %d of %d bytes: %+v", len(page.Items), list.rows, bytes, page.Items)
					}
					return nil
				})
			}
		}
		return peak(t, console.cmd.Process.Pid), max(peakOf(t, db, "messages", "ls"), peakOf(t, db, "dead", "ls"))
	}
	fill([]byte("small"))
	look(len("small")) // a first run fills pools and caches
	consoleBefore, commandBefore := look(len("small"))
	payload := make([]byte, bigPayload)
	_, _ = rand.Read(payload) // never fails; random, so that the server cannot compress it
	fill(payload)
	consoleAfter, commandAfter := look(bigPayload)

	grown, commandGrown := consoleAfter-consoleBefore, commandAfter-commandBefore
	t.Logf("the console: %.1f MB more, the command: %.1f MB more", float64(grown)/1e6, float64(commandGrown)/1e6)
	if grown > consoleMayGrow || commandGrown > commandMayGrow {
		t.Errorf("lists over payloads of %d MiB need too much memory", bigPayload>>20)
	}
}

// forgetPeak resets the kernel's record of a process's peak memory.
func forgetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// peak returns the peak memory in bytes of a process since then.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// peakOf runs a command to its end and returns its peak memory.
func peakOf(t *testing.T, db database, args ...string) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built.Program(t, "cmd/postrider"), append(args, "--dsn", db.dsn)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "scan.stored") {
		t.Fatalf("postrider %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}

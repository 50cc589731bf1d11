package cli

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestReplayIsInterrupted stops a replay that would take minutes, and has it go on.
func TestReplayIsInterrupted(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "f", "--oldest")
	c.enqueue(50)
	if err := (&script{c.pool, c.schema}).carry("f", 50); err != nil {
		t.Fatal(err)
	}
	messages := &watched{text: never}
	cmd, _ := startCommand(t, messages, "dead", "replay", "--all", "--rate", "1", "--yes", "--dsn", c.dsn, "--schema", c.schema)
	waitFor(t, func() bool {
		jobs := decode[[]replayJob](t, c.must("replay", "ls", "--json"))
		return len(jobs) == 1 && jobs[0].Sent > 0
	})
	signalTo(t, cmd, syscall.SIGINT)
	code := waitForCode(t, cmd)
	if code != exitInterrupted || !strings.Contains(messages.String(), "postrider replay resume 1 --schema "+c.schema) {
		t.Errorf("exit code %d\n%s", code, messages)
	}
	job := decode[replayJob](t, c.must("replay", "show", "1", "--json"))
	if job.State != "paused" || job.Sent >= 50 {
		t.Errorf("after the interrupt: %+v", job)
	}
	c.exec("UPDATE @schema@.jobs SET rate = 0")
	job = decode[replayJob](t, c.must("replay", "resume", "1", "--json"))
	if job.State != "done" || job.Sent != 50 {
		t.Errorf("after it went on: %+v", job)
	}
}

// TestReplayHoldsItsRate allows for a machine that is slow now and then, but never for more than was asked for.
func TestReplayHoldsItsRate(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "f", "--oldest")
	const messages, rate = 600, 300
	c.enqueue(messages)
	if err := (&script{c.pool, c.schema}).carry("f", messages); err != nil {
		t.Fatal(err)
	}
	r := decode[replaying](t, c.must("dead", "replay", "--all", "--rate", fmt.Sprint(rate), "--yes", "--json"))
	job := r.Jobs[0]
	took := job.Finished.Sub(job.Created)
	if want := messages * time.Second / rate; job.Sent != messages || took < want*95/100 || took > want*2 {
		t.Errorf("%d messages took %s, want %d in %s", job.Sent, took, messages, want)
	}
	t.Logf("%.1f a second, want %d", messages/took.Seconds(), rate)
}

// TestTail follows the log as a process of its own, until it is interrupted.
func TestTail(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "f", "--oldest")
	c.enqueue(3)
	out := &watched{text: never}
	cmd, pipe := startCommand(t, &watched{text: never}, "messages", "tail", "-n", "2", "--every", "20ms", "--json", "--dsn", c.dsn, "--schema", c.schema)
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := pipe.Read(buf)
			_, _ = out.Write(buf[:n]) // it cannot fail
			if err != nil {
				return
			}
		}
	}()
	lines := func() int { return strings.Count(out.String(), "\n") }
	waitFor(t, func() bool { return lines() == 2 })
	c.enqueue(4)
	waitFor(t, func() bool { return lines() >= 6 })
	signalTo(t, cmd, syscall.SIGINT)
	if code := waitForCode(t, cmd); code != exitInterrupted || lines() != 6 {
		t.Errorf("exit code %d, %d lines:\n%s", code, lines(), out)
	}
}

// waitFor ends the test when a condition does not come true.
func waitFor(t *testing.T, good func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !good(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it did not come true")
		}
	}
}

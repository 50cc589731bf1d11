package brokertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
)

// victimEnv tells a process of this test that it is the consumer to be killed, and how it must
// behave.
const victimEnv = "POSTRIDER_BROKERTEST_VICTIM"

const (
	victimKeys  = 7
	victimLimit = 64 // in flight; more than any victim leaves unfinished
)

// victim is a consumer that hangs, so that it is killed with many unfinished messages.
type victim struct {
	name   string
	patron int // number of the first message of key 0 on which it hangs: earlier than for other keys, so that there are gaps
	others int // number of the first message of each other key on which it hangs
}

func (v victim) String() string { return fmt.Sprintf("%d %d %s", v.patron, v.others, v.name) }

func parseVictim(s string) (v victim, err error) {
	parts := strings.SplitN(s, " ", 3)
	if len(parts) != 3 {
		return v, fmt.Errorf("%q is no victim", s)
	}
	if v.patron, err = strconv.Atoi(parts[0]); err != nil {
		return v, err
	}
	v.others, err = strconv.Atoi(parts[1])
	v.name = parts[2]
	return v, err
}

func (v victim) hangsOn(n int) bool {
	if n%victimKeys == 0 {
		return n >= v.patron
	}
	return n >= v.others
}

// testOrderAfterKill kills two consumers in succession, each with many unfinished messages, while
// more are published. The first completions of each key, over all three consumers, must be in
// order.
func testOrderAfterKill(t *testing.T, h Harness) { testTakeover(t, h, func(*testing.T) {}) }

// testOrderAfterKillOfBoth also kills the server.
func testOrderAfterKillOfBoth(t *testing.T, h Harness) {
	h.needsRestart(t)
	need.Long(t, "restarts the server between two takeovers")
	testTakeover(t, h, h.Restart)
}

func testTakeover(t *testing.T, h Harness, afterKill func(*testing.T)) {
	if h.Unordered || h.Member == nil {
		t.Skip("n/a: keeps no order, or its consumers cannot be killed")
	}
	if h.SlowTakeover {
		need.Long(t, "others take long to find out that a consumer is dead")
	}
	if spec := os.Getenv(victimEnv); spec != "" {
		h.beVictim(t, spec)
	}
	name := h.Create(t)
	p := h.direct(t)
	msgs := messages(name, victimKeys, 240)
	publishInOrder(t, p, victimKeys, msgs[:120])
	done := completions(t, victim{name, 0, 90}, msgs)
	first := len(done)
	afterKill(t)
	publishInOrder(t, p, victimKeys, msgs[120:180])
	done = append(done, completions(t, victim{name, 100, 150}, msgs)...)
	second := len(done) - first
	publishInOrder(t, p, victimKeys, msgs[180:])
	begin := time.Now()
	l := collect(t, h.Member(t, name, "takeover", victimLimit), func(context.Context, postrider.Message) error { return nil })
	last := l.wait(t, missing(done, msgs))
	t.Logf("%d, %d and %d messages were handled by the three; the last took %v", first, second, len(last), time.Since(begin))
	h.expectOrder(t, append(done, last...))
}

// completions runs a victim in a separate process, kills it once it hangs on every key, and returns
// the messages that it has completed, in order.
func completions(t *testing.T, v victim, msgs []postrider.Message) []postrider.Message {
	t.Helper()
	report, reports, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.Command(os.Args[0], "-test.run="+pattern, "-test.timeout=3m")
	cmd.Env = append(os.Environ(), victimEnv+"="+v.String())
	cmd.ExtraFiles = []*os.File{reports}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	life, err := cmd.StdinPipe() // closed with this process, which ends the victim
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = reports.Close()
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = life.Close()
	})
	defer kill()
	timer := time.AfterFunc(waitLimit, kill)
	defer timer.Stop()

	hung := make(map[int]bool)
	var done []postrider.Message
	for lines := bufio.NewScanner(report); lines.Scan(); {
		what, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(msgs) {
			t.Fatalf("the victim reports %q", lines.Text())
		}
		if what == "done" {
			done = append(done, msgs[n])
			continue
		}
		if hung[n%victimKeys] = true; len(hung) == victimKeys {
			kill() // its reports are still in the pipe
		}
	}
	if len(hung) < victimKeys {
		t.Fatalf("the victim hangs on %d of %d keys, after %d messages\n%s", len(hung), victimKeys, len(done), said.String())
	}
	return done
}

// beVictim consumes until the process is killed.
func (h Harness) beVictim(t *testing.T, spec string) {
	v, err := parseVictim(spec)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	reports := os.NewFile(3, "reports")
	tell := func(what string, m postrider.Message) { _, _ = fmt.Fprintf(reports, "%s %s\n", what, m.Payload) }
	err = h.Member(t, v.name, "takeover", victimLimit).Consume(context.Background(), func(_ context.Context, m postrider.Message) error {
		n, err := strconv.Atoi(string(m.Payload))
		if err != nil {
			return err
		}
		if v.hangsOn(n) {
			tell("hung", m)
			select {}
		}
		tell("done", m)
		return nil
	})
	t.Fatalf("Consume has ended: %v", err)
}

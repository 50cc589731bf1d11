package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestStatusOfAStoppedRelay: a relay process that the system has stopped looks well from outside. Canaries tell.
func TestStatusOfAStoppedRelay(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	cmd, _ := startCommand(t, &watched{text: never}, "relay", "--to", "discard:", "--dsn", c.dsn, "--schema", c.schema, "--canary", "1s",
		"--lease", "2m")
	waitFor := func(within time.Duration, what string, cond func(status string) bool) time.Duration {
		t.Helper()
		begin := time.Now()
		for {
			r := c.run("status", "--json")
			if cond(r.out) {
				return time.Since(begin)
			}
			if time.Since(begin) > within {
				t.Fatalf("waited %v in vain until %s:\n%s", within, what, r.out)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	waitFor(30*time.Second, "all is well", func(s string) bool {
		return strings.Contains(s, `"canary":`) && strings.Contains(s, `"healthy":true`)
	})
	signalTo(t, cmd, syscall.SIGSTOP)
	took := waitFor(15*time.Second, "status says that the feed stands", func(s string) bool { return strings.Contains(s, `"stalled"`) })
	t.Logf("told after %v", took.Round(100*time.Millisecond))
	signalTo(t, cmd, syscall.SIGCONT)
	waitFor(15*time.Second, "all is well again", func(s string) bool { return strings.Contains(s, `"healthy":true`) })
	signalTo(t, cmd, syscall.SIGTERM)
	if code := waitForCode(t, cmd); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

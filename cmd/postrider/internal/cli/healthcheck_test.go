package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	c.must("migrate", "up")
	path := writeConfig(t, fmt.Sprintf(`databases: {app: {url: %q, schema: %s}}
destinations: {good: {url: "discard:"}, down: {url: "nats://127.0.0.1:1"}}
feeds: {good: {destination: good, create: oldest}, down: {destination: down, create: oldest}}
health: {listen: "127.0.0.1:0", token: t0ken}
`, c.dsn, c.schema))
	r := startRelay(t, "--config", path, "--feed", "good")
	at := strings.TrimPrefix(r.address(), "http://")
	check := func(args ...string) result {
		return offline(t, append([]string{"healthcheck", "--config", path, "--health", at}, args...)...)
	}
	r.until("ready", func() bool { return check().code == exitOK })
	if live := check("--live"); live.code != exitOK || live.out != "ok\n" {
		t.Errorf("live: %+v", live)
	}
	if stranger := offline(t, "healthcheck", "--health", at); stranger.code != exitFailure || !strings.Contains(stranger.err, "health.token") {
		t.Errorf("without the token: %+v", stranger)
	}
	r.end()
	if gone := check(); gone.code != exitFailure || !strings.Contains(gone.err, "the relay does not answer") {
		t.Errorf("of a relay that has ended: %+v", gone)
	}

	c.enqueue(1)
	r = startRelay(t, "--config", path)
	at = strings.TrimPrefix(r.address(), "http://")
	r.until("waits for its broker", func() bool {
		waits := check()
		return waits.code == exitFailure && strings.Contains(waits.err, "destination down")
	})
	if live := check("--live"); live.code != exitOK {
		t.Errorf("a relay that waits for its broker is at work: %+v", live)
	}
	r.end()
}

func TestCallable(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		":8710": "127.0.0.1:8710", "0.0.0.0:8710": "127.0.0.1:8710", "[::]:8710": "[::1]:8710", "10.1.2.3:8710": "10.1.2.3:8710",
		"[::1]:8710": "[::1]:8710",
	} {
		if got := callable(listen); got != want {
			t.Errorf("%s: %s", listen, got)
		}
	}
}

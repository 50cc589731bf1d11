package cli

import (
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestRelayFeedsAreAskedFor holds that a mistyped feed sends nothing, and that a second one is created when it is asked for.
func TestRelayFeedsAreAskedFor(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.enqueue(5)
	serve := func(until string, args ...string) (int, string, string) {
		t.Helper()
		out, messages := &watched{text: until}, &watched{text: never}
		code := c.relayUntil(out, messages, append([]string{"--to", "stdout:"}, args...)...)
		return code, out.String(), messages.String()
	}
	if code, _, says := serve(`{"n" : 5}`); code != exitOK {
		t.Fatalf("the first feed: exit code %d\n%s", code, says)
	}
	code, out, says := serve(never, "--feed", "defualt")
	if code != exitFailure || out != "" || !strings.Contains(says, `there is no feed "defualt": there are "default"`) || !strings.Contains(says, "--feed defualt --create") {
		t.Errorf("a mistyped feed: exit code %d, printed %q\n%s", code, out, says)
	}
	if code, out, says := serve(`{"n" : 5}`, "--feed", "audit", "--create", "--from", "oldest"); code != exitOK || strings.Count(out, "\n") != 5 {
		t.Errorf("a feed that is asked for: exit code %d, printed %q\n%s", code, out, says)
	}
	record := c.must("audit", "ls", "--feed", "audit", "--json")
	if !strings.Contains(record, `"feed add"`) || !strings.Contains(record, `"count":5`) && !strings.Contains(record, `"count": 5`) {
		t.Errorf("the record is %s", record)
	}
	for line, want := range map[string]string{
		"--create --feed x":                 "add --from",
		"--from now --feed x":               "add --create",
		"--create --from now":               "add --feed",
		"--create --from sometime --feed x": "none of now, oldest",
	} {
		if code, _, says := serve(never, strings.Fields(line)...); code != exitUsage || !strings.Contains(says, want) {
			t.Errorf("%s: exit code %d\n%s", line, code, says)
		}
	}
}

// TestRelayToAnotherDestination holds that nobody takes a feed's messages elsewhere by accident.
func TestRelayToAnotherDestination(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.enqueue(1)
	if code := c.relayUntil(&watched{text: never}, &watched{text: "relay: started"}, "--to", "discard:"); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	out, messages := &watched{text: never}, &watched{text: never}
	code := c.relayUntil(out, messages, "--to", "stdout:")
	if code != exitFailure || out.String() != "" || !strings.Contains(messages.String(), `sends to "discard:", and this relay would send to "stdout:"`) ||
		!strings.Contains(messages.String(), "--force") {
		t.Errorf("exit code %d, printed %q\n%s", code, out, messages)
	}
	c.enqueue(1)
	if code := c.relayUntil(&watched{text: "\n"}, messages, "--to", "stdout:", "--force"); code != exitOK {
		t.Errorf("by force: exit code %d\n%s", code, messages)
	}
	if r := offline(t, "relay"); r.code != exitUsage || !strings.Contains(r.err, "postrider messages tail") || strings.Contains(r.err, "stdout") {
		t.Errorf("without a destination: exit code %d\n%s", r.code, r.err)
	}
}

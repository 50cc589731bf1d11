package cli

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
)

func setEnvironment(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, v := range relay.Variables() {
		t.Setenv(v.Name, "")
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestEnvMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		variables map[string]string
		want      []string
	}{
		"malformed": {map[string]string{
			"OUTBOX_POLL_INTERVAL_MS": "5s", "OUTBOX_BATCH_SIZE": "0", "OUTBOX_MAX_BACKOFF_MS": "-1", "OUTBOX_BACKOFF_BASE_MS": "1e3",
			"OUTBOX_MAX_ATTEMPTS": "99999999999", "INTEV_BACKOFF_SERIES": "1s,,2s", "INTEV_ENABLED": "perhaps",
		}, []string{
			`OUTBOX_POLL_INTERVAL_MS is "5s": want a whole number of milliseconds`, `OUTBOX_BATCH_SIZE is "0"`, `OUTBOX_MAX_BACKOFF_MS is "-1"`,
			`OUTBOX_BACKOFF_BASE_MS is "1e3"`, `OUTBOX_MAX_ATTEMPTS is "99999999999"`, `INTEV_BACKOFF_SERIES is "1s,,2s": "" is not a pause`,
			`INTEV_ENABLED is "perhaps": want true or false`,
		}},
		"two names": {map[string]string{
			"OUTBOX_BATCH_SIZE": "10", "INTEV_BATCH_SIZE": "20", "OUTBOX_POLL_INTERVAL_MS": "10", "INTEV_DISPATCH_INTERVAL_MS": "20",
			"OUTBOX_MAX_ATTEMPTS": "3", "INTEV_MAX_ATTEMPTS": "4",
		}, []string{
			"OUTBOX_BATCH_SIZE=10 and INTEV_BATCH_SIZE=20 contradict each other", "OUTBOX_POLL_INTERVAL_MS=10 and INTEV_DISPATCH_INTERVAL_MS=20",
			"OUTBOX_MAX_ATTEMPTS=3 and INTEV_MAX_ATTEMPTS=4",
		}},
		"two kinds of pauses": {map[string]string{"INTEV_BACKOFF_SERIES": "1s", "OUTBOX_MAX_BACKOFF_MS": "1"},
			[]string{"OUTBOX_MAX_BACKOFF_MS=1 and INTEV_BACKOFF_SERIES=1s contradict each other"}},
	} {
		setEnvironment(t, c.variables)
		r := offline(t, "relay", "--to", "discard:")
		for _, want := range c.want {
			if r.code != exitUsage || !strings.Contains(r.err, want) {
				t.Errorf("%s: exit code %d, and not %q in\n%s", name, r.code, want, r.err)
			}
		}
	}
}

func TestEnvDisables(t *testing.T) {
	setEnvironment(t, map[string]string{"INTEV_ENABLED": "false"})
	if r := offline(t, "relay", "--to", "discard:"); r.code != exitOK || !strings.Contains(r.err, `msg="relay: not started" because="INTEV_ENABLED is false"`) {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

// TestEnvPrecedence holds that a file overrules the environment, and that it overrules defaults.
func TestEnvPrecedence(t *testing.T) {
	setEnvironment(t, map[string]string{
		"OUTBOX_POLL_INTERVAL_MS": "3", "INTEV_DISPATCH_INTERVAL_MS": "3", "OUTBOX_BATCH_SIZE": "5000", "OUTBOX_MAX_BACKOFF_MS": "500",
		"INTEV_MAX_ATTEMPTS": "7",
	})
	env, err := relay.ReadEnvironment()
	if err != nil || !env.Enabled {
		t.Fatal(err)
	}
	filled := func(relayPart string) (relay.Config, error) {
		text := "databases: {a: {url: host=h}}\ndestinations: {d: {url: 'discard:'}}\nfeeds: {default: {relay: {" + relayPart + "}}}\n"
		f, err := config.Parse("p.yaml", []byte(text), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if f, err = fillFile(env, f); err != nil {
			return relay.Config{}, err
		}
		plan, err := f.Feed("default")
		if err != nil {
			t.Fatal(err)
		}
		return plan.Relay, nil
	}
	c, err := filled("")
	if err != nil || c.PollMax != 3*time.Millisecond || c.PollMin != c.PollMax || c.BatchSize != 5000 || c.ReadAhead != 5000 ||
		c.Retry.Most != 500*time.Millisecond || c.Retry.First != c.Retry.Most || c.Retry.Attempts != 7 {
		t.Errorf("%v, %+v", err, c)
	}
	c, err = filled("poll_max: 1s, batch: 9, retry: {attempts: 2, pauses: [1s, 2s]}")
	if err != nil || c.PollMax != time.Second || c.BatchSize != 9 || c.Retry.Attempts != 2 || len(c.Retry.Pauses) != 2 || c.Retry.Most != 0 {
		t.Errorf("%v, %+v", err, c)
	}
	_, err = filled("poll_min: 5ms")
	if err == nil || !strings.Contains(err.Error(), "OUTBOX_POLL_INTERVAL_MS") || !strings.Contains(err.Error(), "poll_min (5ms) is longer than poll_max (3ms)") {
		t.Error(err)
	}

	for _, series := range []string{"1s, 5s,30s,2m,10m", "[1000,5000,30000,120000,600000]", "1000, 5000,30000,120000,600000"} {
		setEnvironment(t, map[string]string{"INTEV_BACKOFF_SERIES": series})
		if env, err = relay.ReadEnvironment(); err != nil {
			t.Fatal(err)
		}
		if c, err = filled(""); err != nil || !slices.Equal(c.Retry.Pauses, []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}) || c.Retry.First != 0 {
			t.Errorf("%s: %v, %+v", series, err, c)
		}
	}
	if c, err = filled("retry: {most: 1m}"); err != nil || c.Retry.Pauses != nil || c.Retry.Most != time.Minute {
		t.Errorf("%v, %+v", err, c)
	}
	// Flags are the same, with their defaults in place.
	c = relay.Config{Retry: retry.Policy{First: time.Second, Most: time.Minute}, BatchSize: 500}
	if used := env.Overlay(&c, func(string) bool { return false }); len(used) != 1 || c.Retry.First != 0 || len(c.Retry.Pauses) != 5 {
		t.Errorf("%v, %+v", used, c)
	}
	if used := env.Overlay(&c, func(key string) bool { return key == "retry_first" }); len(used) != 0 {
		t.Errorf("a flag was overruled by %q", used)
	}
}

// TestEnvOfReconcilers holds that a variable says when a reconciler is due whose file does not, and is checked as the file is.
func TestEnvOfReconcilers(t *testing.T) {
	const file = `databases: {a: {url: host=h}}
destinations: {d: {url: 'discard:'}}
feeds: {default: }
reconcilers:
  session-payout: {consumer: billing}
  enrollment: {consumer: billing, every: 2m}
`
	fill := func() (*config.File, error) {
		f, err := config.Parse("p.yaml", []byte(file), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		return fillFile(new(relay.Environment), f)
	}
	setEnvironment(t, map[string]string{"RECONCILE_SESSION_PAYOUT_CRON": "*/5 * * * *", "RECONCILE_ENROLLMENT_CRON": "1 * * * *"})
	f, err := fill()
	if err != nil || f.Reconcilers["session-payout"].Cron != "*/5 * * * *" || f.Reconcilers["enrollment"].Cron != "" {
		t.Errorf("%v, %+v", err, f)
	}
	t.Setenv("RECONCILE_SESSION_PAYOUT_CRON", "every day")
	if _, err := fill(); err == nil || !strings.Contains(err.Error(), "RECONCILE_SESSION_PAYOUT_CRON") {
		t.Errorf("a wrong one: %v", err)
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// offline runs a command line that needs no server.
func offline(t *testing.T, args ...string) result {
	t.Helper()
	var out, messages bytes.Buffer
	code := execute(t.Context(), streams{in: strings.NewReader(""), out: &out, err: &messages}, args)
	return result{code, out.String(), messages.String()}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                     "which command?",
		"migrat":                               "did you mean: postrider migrate",
		"bench":                                "which command?",
		"bench overheat":                       "did you mean: postrider bench overhead",
		"migrate sideways":                     "postrider migrate --help",
		"relay --no-such-flag":                 "unknown flag",
		"relay now":                            "takes no arguments",
		"relay":                                "neither --to nor --config",
		"relay --to nowhere://host":            "no broker has the scheme \"nowhere\"",
		"relay --to stdout":                    "did you mean: --to stdout:",
		"relay --to discard: --set x":          "want option=value",
		"relay --to discard: --set a=b":        "unknown option \"a\"",
		"relay --to stdout: --set format=raw":  "only one",
		"relay --to stdout: --config x.yaml":   "--to and --config contradict",
		"relay --to stdout: --feed a --feed b": "--to serves one feed",
		"relay --config x.yaml --lease 5s":     "--lease and --config contradict each other: the file x.yaml sets it in feeds.NAME.relay.lease",
		"relay --config x.yaml --dsn x":        "databases.NAME.url",
		"relay --config x.yaml --set a=b":      "--set a=b and --config contradict",
		"relay --config no-such-file.yaml":     "no-such-file.yaml: no such file",
		"config":                               "which command?",
		"config validate":                      "postrider.yaml: no such file",
		"config validate a b":                  "takes one file",
		"config schema x":                      "takes no arguments",
		"brokers x":                            "takes no arguments",
		"relay --log-format xml --to discard:": "want text or json",
		"relay --batch 9000 --to discard:":     "BatchSize (9000) is larger than ReadAhead",
		"migrate down":                         "--to",
		"migrate down --to 99":                 "--to",
		"migrate print --shards 5000":          "Shards is 5000",
		"migrate print --schema Upper":         "schema name",
		"migrate print --from 99":              "--from is 99",
		"bench overhead --payload 1":           "payload is 1: want at least 8",
		"bench overhead --messages 1":          "unknown flag", // it counts seconds
		"version --dsn":                        "flag needs an argument",
		"migrate status --dsn port=abc":        "invalid port",
	} {
		t.Run(line, func(t *testing.T) {
			r := offline(t, strings.Fields(line)...)
			if r.code != exitUsage || !strings.Contains(r.err, want) {
				t.Errorf("exit code %d, want %d and %q in\n%s", r.code, exitUsage, want, r.err)
			}
			if r.out != "" {
				t.Errorf("data on stdout: %q", r.out)
			}
		})
	}
}

func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	dsn := fmt.Sprintf("postgres://rider:hidden-secret@%s/db?sslmode=disable", port.For(t))
	for _, line := range []string{"migrate status", "migrate up", "rebase --yes", "bench drain"} {
		r := offline(t, append(strings.Fields(line), "--dsn", dsn)...)
		if r.code != exitUnreachable || !strings.Contains(r.err, "psql") {
			t.Errorf("%s: exit code %d, want %d and the next command in\n%s", line, r.code, exitUnreachable, r.err)
		}
		if strings.Contains(r.err, "hidden-secret") {
			t.Errorf("%s: the password is in\n%s", line, r.err)
		}
	}
}

func TestMissingSchema(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	for _, line := range []string{"migrate status", "feeds ls", "rebase --yes"} {
		r := c.run(strings.Fields(line)...)
		if r.code != exitSchema || !strings.Contains(r.err, "postrider migrate up --schema "+c.schema) {
			t.Errorf("%s: exit code %d, want %d and the next command in\n%s", line, r.code, exitSchema, r.err)
		}
	}
}

func TestAddressFromEnvironment(t *testing.T) {
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15")
	c := newCLI(t, dsn)
	c.must("migrate", "up")
	for _, name := range []string{"POSTRIDER_DSN", "DATABASE_URL"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, dsn)
			var out, messages bytes.Buffer
			s := streams{in: strings.NewReader(""), out: &out, err: &messages}
			if code := execute(t.Context(), s, []string{"migrate", "status", "--schema", c.schema}); code != exitOK {
				t.Errorf("exit code %d\n%s", code, messages.String())
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, err := range map[int]error{
		exitFailure:     errors.New("other"),
		exitUsage:       fmt.Errorf("wrapped: %w", usagef("wrong")),
		exitSchema:      fmt.Errorf("wrapped: %w", feeds.ErrSchema),
		exitUnreachable: fmt.Errorf("wrapped: %w", &net.OpError{Op: "read", Err: errors.New("reset by peer")}),
		exitInterrupted: fmt.Errorf("wrapped: %w", context.Canceled),
	} {
		if got := exitCode(ended, err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

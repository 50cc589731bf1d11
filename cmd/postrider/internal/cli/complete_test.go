package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestComplete holds that a shell completes what only the database knows, and nothing where nothing is known.
func TestComplete(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	c.must("feeds", "add", "orders")
	c.must("feeds", "add", "audit")
	for line, want := range map[string]string{
		"dead ls --feed ":     "audit\norders\n:4\n",
		"dead ls --consumer ": ":4\n",
		"feeds pause ":        "audit\norders\n:4\n",
		"feeds rewind o":      "audit\norders\n:4\n", // the shell compares
		"feeds add ":          ":0\n",
		"dead show ":          ":4\n",
	} {
		var out, messages bytes.Buffer
		args := append([]string{"__complete", "--dsn", c.dsn, "--schema", c.schema}, strings.Split(line, " ")...)
		code := execute(t.Context(), streams{in: strings.NewReader(""), out: &out, err: &messages}, args)
		if got := out.String(); code != exitOK || got != want {
			t.Errorf("%s: exit code %d, %q, want %q\n%s", line, code, got, want, &messages)
		}
	}
}

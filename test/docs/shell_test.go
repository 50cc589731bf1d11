package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/docs/scratch"
)

// shell returns an error if bash cannot parse a block, or PostgreSQL rejects SQL in it. With the
// comment "run" above it, the block is executed.
func shell(t *testing.T, b block) error {
	t.Helper()
	parse := exec.CommandContext(t.Context(), "bash", "-n")
	parse.Stdin = strings.NewReader(b.text)
	if out, err := parse.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := console(t, b); err != nil {
		return err
	}
	if err := inRepository(b); err != nil {
		return err
	}
	if _, ok := b.notes["run"]; ok {
		return execute(t, b)
	}
	return nil
}

var psql = regexp.MustCompile(`(?s)\bpsql [^\n]*?-c "((?:[^"\\]|\\.)*)"`)

// console returns an error if the SQL of a block with commands and their output is wrong.
// cmd/postrider checks command lines of postrider.
func console(t *testing.T, b block) error {
	t.Helper()
	for _, m := range psql.FindAllStringSubmatch(b.text, -1) {
		statement := block{text: regexp.MustCompile(`\\(.)`).ReplaceAllString(m[1], "$1") + "\n", setup: b.setup}
		if err := query(t, statement); err != nil {
			return err
		}
	}
	return nil
}

// execute runs a block as a reader would, in an empty folder, with its own database.
func execute(t *testing.T, b block) error {
	t.Helper()
	folder := filepath.Dir(built.Program(t, "cmd/postrider"))
	address := scratch.Empty(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	run := exec.CommandContext(ctx, "bash", "-euo", "pipefail")
	run.Stdin = strings.NewReader(b.text)
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "DATABASE_URL="+address, "POSTRIDER_DSN=", "PATH="+folder+":"+os.Getenv("PATH"))
	run.WaitDelay = time.Second
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Run(); err != nil {
		return errors.Join(err, ctx.Err(), errors.New(out.String()))
	}
	return nil
}

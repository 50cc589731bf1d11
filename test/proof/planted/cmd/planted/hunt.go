package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/oracle"
	"github.com/postrider/postrider/test/proof/campaign/world"
	"github.com/postrider/postrider/test/proof/planted"
)

// hunter runs campaigns with and without bugs.
type hunter struct {
	Postgres *string
	Report   *string
	dir      string
	clean    map[string]oracle.Verdict // on campaigns without a bug
	lines    []line
}

// line is the result of a hunt.
type line struct {
	planted.Bug
	caught []oracle.Finding
	took   time.Duration
}

func (h *hunter) all(ctx context.Context, bugs []planted.Bug) error {
	h.clean = make(map[string]oracle.Verdict)
	var trouble []error
	for _, b := range bugs {
		if len(b.Hunt.To) == 0 {
			fmt.Printf("%s, %s: found by tests only\n", b.ID, b.Name)
			continue
		}
		if err := h.hunt(ctx, b); err != nil {
			trouble = append(trouble, fmt.Errorf("%s: %w", b.ID, err))
			fmt.Println(trouble[len(trouble)-1])
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if *h.Report != "" { // after each one: all of them take an hour
			if err := writePage(*h.Report, h.rows()); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%s\n", strings.Join(h.rows(), "\n"))
	return errors.Join(trouble...)
}

// hunt runs a bug's campaign without it, unless that was done before, and with it.
func (h *hunter) hunt(ctx context.Context, b planted.Bug) error {
	without, err := h.without(ctx, b.Hunt)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %s: %s\n", b.ID, b.Name, b.Hunt)
	if err := h.build(ctx, b.ID, b, b.Hunt); err != nil {
		return err
	}
	verdict, took, err := h.campaign(ctx, b.ID, b.ID, b.Hunt)
	if err != nil {
		return err
	}
	l := line{Bug: b, took: took}
	for _, id := range b.Breaks {
		// An invariant that is broken without the bug too proves nothing.
		if f := verdict.Finding(id); f.State == oracle.Broken && without.Finding(id).State == oracle.OK {
			l.caught = append(l.caught, f)
		}
	}
	h.lines = append(h.lines, l)
	if len(l.caught) == 0 {
		return fmt.Errorf("missed: want one of %s broken, and that only with the bug", strings.Join(b.Breaks, ", "))
	}
	fmt.Printf("%s  caught by %s after %d s: %s\n", b.ID, l.caught[0].ID, int(took.Seconds()), firstOf(l.caught[0].Examples))
	if broken := without.Broken(); len(broken) > 0 {
		return fmt.Errorf("the campaign is not clean without the bug: %s %s", broken[0].ID, firstOf(broken[0].Examples))
	}
	return nil
}

// without runs a campaign without any bug, unless that was done before.
func (h *hunter) without(ctx context.Context, hunt planted.Hunt) (oracle.Verdict, error) {
	if verdict, done := h.clean[hunt.String()]; done {
		return verdict, nil
	}
	fmt.Printf("without a bug: %s\n", hunt)
	if err := h.build(ctx, "clean", planted.Bug{}, hunt); err != nil {
		return oracle.Verdict{}, err
	}
	verdict, _, err := h.campaign(ctx, "clean", "clean-"+strconv.Itoa(len(h.clean)+1), hunt)
	if err == nil {
		h.clean[hunt.String()] = verdict
	}
	return verdict, err
}

// build builds the binaries of a campaign: relays, relays whose clock can be wrong if needed, and
// the campaign itself, with its consumers and producers.
func (h *hunter) build(ctx context.Context, name string, b planted.Bug, hunt planted.Hunt) error {
	folder := filepath.Join(h.dir, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := build(ctx, b, folder, "postrider", "./cmd/postrider", nil); err != nil {
		return err
	}
	if slices.Contains(hunt.Only, wrongClock) {
		skew, err := world.SkewOverlay(ctx, folder)
		if err == nil {
			err = build(ctx, b, folder, "skewed", "./cmd/postrider", skew)
		}
		if err != nil {
			return err
		}
	}
	return build(ctx, b, folder, "campaign", "./test/proof/campaign/cmd/campaign", nil)
}

const (
	wrongClock = "relay-clock" // the fault that needs a special binary
	instance   = "planted"     // distinguishes these campaigns from others on the machine
)

func build(ctx context.Context, b planted.Bug, folder, binary, from string, others map[string]string) error {
	overlay, err := b.Overlay(".", folder, others)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", filepath.Join(folder, binary), from)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", binary, err, out)
	}
	return nil
}

// campaign runs one and returns its verdict. The exit status repeats the verdict, so only a worse
// status is an error.
func (h *hunter) campaign(ctx context.Context, binaries, name string, hunt planted.Hunt) (oracle.Verdict, time.Duration, error) {
	dir := filepath.Join(h.dir, "run-"+name)
	if err := os.RemoveAll(dir); err != nil {
		return oracle.Verdict{}, 0, err
	}
	folder := filepath.Join(h.dir, binaries)
	args := append([]string{"run", "--dir", dir, "--instance", instance, "--postgres", *h.Postgres,
		"--postrider", filepath.Join(folder, "postrider")}, hunt.Flags()...)
	if slices.Contains(hunt.Only, wrongClock) {
		args = append(args, "--skewed", filepath.Join(folder, "skewed"))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "campaign"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it stops its servers
	cmd.WaitDelay = 5 * time.Minute
	log, err := os.Create(filepath.Join(h.dir, name+".log"))
	if err != nil {
		return oracle.Verdict{}, 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	err = cmd.Run()
	took := time.Since(start)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		err = fmt.Errorf("the campaign failed: %w; see %s", err, log.Name())
		return oracle.Verdict{}, took, errors.Join(err, world.Clean(context.WithoutCancel(ctx), instance)) // it may have been killed
	}
	verdict, err := oracle.Load(dir)
	return verdict, took, err
}

// rows formats the results in Markdown, one row per bug.
func (h *hunter) rows() []string {
	var rows []string
	for _, l := range h.lines {
		var by []string
		for _, f := range l.caught {
			by = append(by, fmt.Sprintf("%s %s: %.4g", f.ID, f.Name, f.Figure))
		}
		rows = append(rows, fmt.Sprintf("| %s %s | %s | %s | %s | %d |",
			l.ID, l.Name, l.Does, l.Hunt, cmp.Or(strings.Join(by, ", "), missed), int(l.took.Seconds())))
	}
	return rows
}

func firstOf(examples []string) string {
	if len(examples) == 0 {
		return ""
	}
	return examples[0]
}

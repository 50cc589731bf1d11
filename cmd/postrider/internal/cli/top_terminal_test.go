package cli

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/top"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

var update = flag.Bool("update", false, "write the golden files")

// pane is a terminal of 100 columns and 30 lines, in which a program runs between two lines of a shell.
type pane struct {
	t       *testing.T
	folder  string
	pidFile string
}

func openPane(t *testing.T, env []string, program ...string) *pane {
	t.Helper()
	need.Program(t, "tmux", "tmux")
	folder, err := os.MkdirTemp("", "top") //nolint:usetesting // a short path: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t, folder, filepath.Join(folder, "pid")}
	t.Cleanup(func() {
		p.tmux("kill-server")
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	config := filepath.Join(folder, "conf")
	if err := os.WriteFile(config, []byte("set -g status off\nset -g escape-time 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `echo before; sh -c 'echo $$ >"$0"; exec "$@"' "$@"; echo "left with $?"; stty -a | grep -o '[-]*icanon'; exec cat`
	args := append([]string{"-u", "-f", config, "new-session", "-d", "-x", "100", "-y", "30", "sh", "-c", script, "sh", p.pidFile}, program...)
	p.command(env, args...)
	return p
}

func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	return p.command(nil, args...)
}

func (p *pane) command(env []string, args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", args...)
	cmd.Env = append(append(os.Environ(), "TMUX_TMPDIR="+p.folder, "TMUX="), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// wait returns the screen as soon as it satisfies a condition, or the last one.
func (p *pane) wait(good func(screen string) bool) (string, bool) {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		screen := p.tmux("capture-pane", "-p")
		if good(screen) || time.Now().After(deadline) {
			return screen, good(screen)
		}
	}
}

// waitFor waits until the screen shows all of the texts.
func (p *pane) waitFor(texts ...string) string {
	p.t.Helper()
	screen, ok := p.wait(func(screen string) bool {
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	})
	if !ok {
		p.t.Fatalf("the screen does not show %q:\n%s", texts, screen)
	}
	return screen
}

var changing = []struct {
	pattern *regexp.Regexp
	width   bool // keep it, with the mark at the right
}{
	{regexp.MustCompile(`schema \S+`), false},
	{regexp.MustCompile(` +\d{4}-\d\d-\d\d .*`), false},
	{regexp.MustCompile(` *[▁▂▃▄▅▆▇█]+`), false},
	{regexp.MustCompile(` +\d+[smhd](\d+[mhs])?\b`), true},
}

// masked hides ages, times and what differs from run to run.
func masked(screen string) string {
	for _, c := range changing {
		screen = c.pattern.ReplaceAllStringFunc(screen, func(s string) string {
			if !c.width {
				return " #"
			}
			return strings.Repeat(" ", len(s)-1) + "#"
		})
	}
	return strings.TrimRight(screen, "\n") + "\n"
}

func goldenScreen(t *testing.T, name string) (path, want string) {
	t.Helper()
	path = filepath.Join("testdata", "top", name+".golden")
	text, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	return path, string(text)
}

// matchScreen compares a screen with a golden file.
func matchScreen(t *testing.T, name, screen string) {
	t.Helper()
	path, want := goldenScreen(t, name)
	if *update {
		if err := os.WriteFile(path, []byte(masked(screen)), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if masked(screen) != want {
		t.Errorf("the screen differs from %s; -update writes it again. It is\n%s", path, masked(screen))
	}
}

// match waits until the screen is as in a golden file. One that is to be written must show some texts.
func (p *pane) match(name string, texts ...string) {
	p.t.Helper()
	p.waitFor(texts...)
	_, want := goldenScreen(p.t, name)
	screen, _ := p.wait(func(screen string) bool { return *update || masked(screen) == want })
	matchScreen(p.t, name, screen)
}

// openTop runs the command in a terminal.
func openTop(t *testing.T, c *cli, env []string, interval string) *pane {
	t.Helper()
	env = append(env, runAsCommand+"=1", "POSTRIDER_DSN="+c.dsn)
	return openPane(t, env, os.Args[0], "top", "--schema", c.schema, "--interval", interval)
}

func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	plantTop(t, c)
	p := openTop(t, c, nil, "200ms")
	p.match("feeds", ">archive", "order/17", "     0       0 ")
	if colours := p.tmux("capture-pane", "-p", "-e"); !strings.Contains(colours, "\x1b[31m") {
		t.Errorf("there are no colours in\n%q", colours)
	}
	p.tmux("send-keys", "Down")
	p.match("selected", ">billing", "order/17")
	p.tmux("send-keys", "Enter")
	p.match("inside", "too large")
	p.tmux("send-keys", "Escape")
	p.match("selected", ">billing", "order/17")
	p.tmux("send-keys", "?", "k")
	p.match("help", ">archive", "q: quit", "order/17")

	c.enqueue(2)
	p.waitFor("       5 ")
	p.tmux("send-keys", "p")
	p.waitFor("paused since")
	p.tmux("send-keys", "q")
	if screen := p.waitFor("before", "left with 0", "icanon"); strings.Contains(screen, "-icanon") || strings.Contains(screen, "FEED") {
		t.Errorf("the terminal is not as it was:\n%s", screen)
	}
}

// TestTopFitsItsWindow looks so seldom that only the signal can make it draw again, and then ends it.
func TestTopFitsItsWindow(t *testing.T) {
	t.Parallel()
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	plantTop(t, c)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := openTop(t, c, []string{"NO_COLOR=1"}, "1h")
		p.waitFor("LAG, 1 MIN", "?: keys")
		if colours := p.tmux("capture-pane", "-p", "-e"); strings.Contains(colours, "\x1b[") {
			t.Errorf("there are colours in\n%q", colours)
		}
		p.tmux("resize-window", "-x", "60", "-y", "12")
		p.match("small", "…\n", "?: keys")

		text, err := os.ReadFile(p.pidFile)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
		if screen := p.waitFor("before", "left with 130", "icanon"); strings.Contains(screen, "-icanon") || strings.Contains(screen, "FEED") {
			t.Errorf("the terminal is not as it was:\n%s", screen)
		}
	}
}

// TestTopPanics runs itself in a terminal, with a look that breaks.
func TestTopPanics(t *testing.T) {
	t.Parallel()
	const inPane = "POSTRIDER_TEST_TOP_PANICS"
	if os.Getenv(inPane) != "" {
		s := topScreen{terminal: &terminal{in: os.Stdin, out: os.Stdout}, state: &top.State{}, interval: time.Millisecond,
			look: func(context.Context, string) (top.Snapshot, error) { panic("the look broke") }}
		t.Fatal(s.run(t.Context()))
	}
	p := openPane(t, []string{inPane + "=1"}, os.Args[0], "-test.run=^TestTopPanics$")
	if screen := p.waitFor("left with 2", "icanon"); strings.Contains(screen, "-icanon") || strings.Contains(screen, "?: keys") {
		t.Errorf("the terminal is not as it was:\n%s", screen)
	}
	if history := p.tmux("capture-pane", "-p", "-S", "-"); !strings.Contains(history, "panic: the look broke") {
		t.Errorf("nothing tells of the panic:\n%s", history)
	}
}

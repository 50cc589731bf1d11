package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/postrider/postrider/internal/sleep"
)

// team is a group of relays in separate processes: "postrider relay", as users run it.
type team struct {
	members []*member
	shards  int // number of shards of all feeds
	folder  string
}

// member is one relay process.
type member struct {
	cmd     *exec.Cmd
	address string // of its metrics
	ended   chan struct{}
	err     error // valid once ended is closed
}

// assignment is what a team serves.
type assignment struct {
	relays      int
	labs        []*Lab // one per database
	feeds       []string
	to          destination
	connections int           // of a process; 0: the default
	maintain    time.Duration // maintenance interval; 0: the default
}

// destination is where the relays send to.
type destination struct {
	url     string
	name    string // topic, queue, subject or stream; empty: determined by the message
	options map[string]string
}

var nowhere = destination{url: "discard:"}

// startTeam starts relays and waits until they have divided all shards among them. The caller stops
// them.
func (l *Lab) startTeam(ctx context.Context, a assignment) (t *team, err error) {
	t = &team{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.stop())
		}
	}()
	if t.folder, err = os.MkdirTemp("", "postrider-bench-"); err != nil {
		return t, err
	}
	text, secrets, err := a.file()
	if err != nil {
		return t, err
	}
	path := filepath.Join(t.folder, "postrider.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return t, err
	}
	for _, lab := range a.labs {
		t.shards += lab.Shards * len(a.feeds)
	}
	for n := range a.relays {
		m, err := l.startMember(ctx, path, fmt.Sprintf("bench-%d", n+1), secrets)
		if m != nil {
			t.members = append(t.members, m)
		}
		if err != nil {
			return t, err
		}
	}
	return t, t.ready(ctx)
}

// file returns the relays' configuration, and the variables that it uses, which keep passwords out
// of the file. JSON is valid YAML.
func (a assignment) file() (text []byte, secrets []string, err error) {
	databases, feeds := make(map[string]any), make(map[string]any)
	for i, lab := range a.labs {
		name, variable := fmt.Sprintf("d%d", i), fmt.Sprintf("POSTRIDER_BENCH_DATABASE_%d", i)
		databases[name] = map[string]any{"url": "${" + variable + "}", "schema": lab.schema}
		address, err := addressOf(lab.config, relayName)
		if err != nil {
			return nil, nil, err
		}
		secrets = append(secrets, variable+"="+address)
		for _, feed := range a.feeds {
			settings := map[string]any{"database": name, "create": "oldest"}
			if a.to.name != "" {
				settings["routes"] = []any{map[string]any{"name": a.to.name}}
			}
			if a.maintain > 0 {
				settings["relay"] = map[string]any{"maintain_interval": a.maintain.String()}
			}
			feeds[feed+"-"+name] = settings
		}
	}
	to := map[string]any{"url": "${POSTRIDER_BENCH_TO}"}
	for option, value := range a.to.options {
		to[option] = value
	}
	secrets = append(secrets, "POSTRIDER_BENCH_TO="+a.to.url)
	file := map[string]any{
		"databases": databases, "destinations": map[string]any{"to": to}, "feeds": feeds, "health": map[string]any{"listen": "127.0.0.1:0"},
	}
	if a.connections > 0 {
		file["connections"] = a.connections
	}
	text, err = json.Marshal(file)
	return text, secrets, err
}

// startMember starts a relay and waits until it logs the address of its metrics.
func (l *Lab) startMember(ctx context.Context, config, name string, secrets []string) (*member, error) {
	if l.Program == "" {
		return nil, errors.New("bench: the program for relays is not set")
	}
	cmd := exec.CommandContext(ctx, l.Program, "relay", "--config", config, "--name", name, "--log-format", "json")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = progressTimeout
	cmd.SysProcAttr = endWithParent()
	for _, variable := range os.Environ() { // variables of the user's shell must not affect the measurement
		own := strings.HasPrefix(variable, "POSTRIDER_") && !strings.HasPrefix(variable, "POSTRIDER_TEST_")
		if !own && !strings.HasPrefix(variable, "OTEL_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, secrets...)
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: starting a relay: %w", err)
	}
	m := &member{cmd: cmd, ended: make(chan struct{})}
	address := make(chan string, 1)
	go func() {
		defer close(m.ended)
		last := l.follow(log, address)
		if m.err = cmd.Wait(); m.err != nil {
			m.err = fmt.Errorf("bench: a relay has ended: %w: %s", m.err, last)
		}
	}()
	select {
	case m.address = <-address:
		return m, nil
	case <-m.ended:
		return m, errors.Join(errors.New("bench: a relay did not start"), m.err)
	case <-time.After(progressTimeout):
		return m, errors.New("bench: a relay has not logged the address of its metrics")
	}
}

// follow reads a relay's log to its end, logs warnings and errors, and returns the last line.
func (l *Lab) follow(log io.Reader, address chan<- string) (last string) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		last = lines.Text()
		var line struct {
			Level       slog.Level
			Msg, Listen string
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		if line.Msg == "relay: health" {
			address <- line.Listen
		}
		weak := line.Msg == "relay: the destination needs attention" // not relevant here
		if line.Level >= slog.LevelWarn && !weak && l.Logger != nil {
			l.Logger.Warn("bench: log of a relay", "line", last)
		}
	}
	_, _ = io.Copy(io.Discard, log) // after a line that is too long for the scanner
	return last
}

// ready waits until each relay owns its share of all shards.
func (t *team) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*progressTimeout)
	defer cancel()
	for {
		var held, fair float64
		for _, m := range t.members {
			figures, err := m.scrape(ctx)
			if err != nil {
				return err
			}
			if figures["postrider_shards_held"] == figures["postrider_shards_quota"] {
				fair++
			}
			held += figures["postrider_shards_held"]
		}
		if int(held) == t.shards && int(fair) == len(t.members) {
			return nil
		}
		if !sleep.For(ctx, 50*time.Millisecond) {
			return fmt.Errorf("bench: %d relays own %.0f of %d shards: %w", len(t.members), held, t.shards, ctx.Err())
		}
	}
}

// stop stops all relays cleanly, and removes their configuration.
func (t *team) stop() error {
	errs := make([]error, len(t.members), len(t.members)+1)
	var all sync.WaitGroup
	for i, m := range t.members {
		all.Go(func() {
			select {
			case <-m.ended: // it has ended too early
				errs[i] = m.err
				return
			default:
			}
			_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have ended meanwhile
			<-m.ended
			errs[i] = m.err
		})
	}
	all.Wait()
	t.members = nil
	if t.folder != "" {
		errs = append(errs, os.RemoveAll(t.folder))
	}
	return errors.Join(errs...)
}

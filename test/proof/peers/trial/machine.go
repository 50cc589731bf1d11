package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
)

// serverSettings are the settings that affect the results.
var serverSettings = []string{"shared_buffers", "max_wal_size", "wal_level", "fsync", "synchronous_commit", "autovacuum",
	"max_connections", "checkpoint_timeout", "full_page_writes"}

// Introduce records the machine, the servers, and the setup of each peer.
func (l *Lab) Introduce(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, l.Server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	m := result.Machine{
		At: time.Now().UTC().Truncate(time.Second), CPUs: runtime.NumCPU(), CPU: fromFile("/proc/cpuinfo", "model name"),
		Kernel: strings.TrimSpace(read("/proc/sys/kernel/osrelease")), Go: runtime.Version(),
		Server: map[string]string{}, Options: l.Options,
	}
	kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(fromFile("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	m.MemoryMB = kilobytes >> 10
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		m.Commit = strings.TrimSpace(string(out))
	}
	if err := conn.QueryRow(ctx, "SHOW server_version").Scan(&m.PostgreSQL); err != nil {
		return err
	}
	for _, name := range serverSettings {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return err
		}
		m.Server[name] = value
	}
	if err := l.Record(result.Line{Machine: &m}); err != nil {
		return err
	}
	for _, name := range l.Options.Peers {
		p, err := peer.Find(name)
		if err != nil {
			return err
		}
		version, err := p.Version(l.Programs)
		if err != nil {
			return fmt.Errorf("trial: which version of %s: %w", name, err)
		}
		if version == "(devel)" {
			version = "commit " + m.Commit
		}
		settings := p.Settings(peer.Job{Stock: l.Stock})
		if err := l.Record(result.Line{Peer: &result.Peer{Name: name, Version: version, Stock: l.Stock, Settings: settings}}); err != nil {
			return err
		}
		l.Say("%s %s", name, version)
		for _, s := range settings {
			l.Say("    %s: %s", s.Name, s.Value)
		}
	}
	return nil
}

// fromFile returns the value of the first line "name : value".
func fromFile(path, name string) string {
	for line := range strings.Lines(read(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func read(path string) string {
	text, _ := os.ReadFile(path) // unreadable values stay empty
	return string(text)
}

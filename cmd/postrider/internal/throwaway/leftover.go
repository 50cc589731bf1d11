package throwaway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// stopLeftover stops a server that has outlived the process that started it. It does not rely on
// the process ID, which may have been reused: the server must accept the password, and report this
// folder as its data directory.
func stopLeftover(ctx context.Context, path string) error {
	text, err := os.ReadFile(filepath.Join(path, "data", "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*stopTimeout)
	defer cancel()
	for runsOn(ctx, path, pid) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("a PostgreSQL, process %d, still runs on %s and does not stop", pid, path)
		case <-time.After(pollInterval):
		}
	}
	// The file is stale: its process has ended, or the ID was reused. The server would refuse to
	// start with it.
	return remove(filepath.Join(path, "data", "postmaster.pid"))
}

// runsOn reports whether a server runs on a folder, and interrupts it if it responds.
func runsOn(ctx context.Context, path string, pid int) bool {
	url, err := os.ReadFile(filepath.Join(path, "url"))
	if err != nil {
		return false
	}
	data, err := dataDirectory(ctx, strings.TrimSpace(string(url)))
	if err != nil {
		var refused *pgconn.PgError
		return errors.As(err, &refused) && refused.Code == "57P03" // starting or stopping
	}
	there, err := os.Stat(data)
	here, err1 := os.Stat(filepath.Join(path, "data"))
	if errors.Join(err, err1) != nil || !os.SameFile(here, there) {
		return false
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Signal(os.Interrupt) // it may have ended meanwhile
	}
	return true
}

// dataDirectory returns the data directory that a server reports.
func dataDirectory(ctx context.Context, url string) (path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	return path, conn.QueryRow(ctx, "SHOW data_directory").Scan(&path)
}

package world

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// copyCluster creates a physical copy of a running server. Not every set of binaries has
// pg_basebackup.
func copyCluster(ctx context.Context, from, to *node) error {
	data := filepath.Join(to.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	return from.as(ctx, "postrider", func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', true)"); err != nil {
			return err
		}
		if err := copyTree(filepath.Join(from.dir, "data"), data); err != nil {
			return err
		}
		var label string
		if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
			return err
		}
		file := filepath.Join(data, "backup_label")
		if err := createLike(file, filepath.Join(data, "PG_VERSION")); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(label), 0o600)
	})
}

var (
	// emptied are folders whose contents belong only to the running server.
	emptied = []string{"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans"}
	skipped = []string{"postmaster.pid", "postmaster.opts", "backup_label", "standby.signal", "recovery.signal"}
)

// copyTree copies a data directory with its owners. Files may vanish and change meanwhile:
// replaying the WAL from the begin of the copy repairs it.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir():
			if err := os.Mkdir(target, info.Mode().Perm()); err != nil {
				return err
			}
			if err := own(target, info); err != nil {
				return err
			}
			if slices.Contains(emptied, name) {
				return emptyFolder(path, target, name)
			}
			return nil
		case slices.Contains(skipped, name), strings.HasPrefix(entry.Name(), "pgsql_tmp"), !entry.Type().IsRegular():
			return nil
		}
		return copyFile(path, target, info)
	})
}

// emptyFolder creates a folder without its contents, except for the one subfolder that a server
// does not create by itself.
func emptyFolder(from, to, name string) error {
	if name == "pg_wal" {
		info, err := os.Stat(filepath.Join(from, "archive_status"))
		if err != nil {
			return err
		}
		status := filepath.Join(to, "archive_status")
		if err := os.Mkdir(status, info.Mode().Perm()); err != nil {
			return err
		}
		if err := own(status, info); err != nil {
			return err
		}
	}
	return fs.SkipDir
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Close(), own(to, info))
}

// createLike creates an empty file with the owner and mode of another one.
func createLike(file, other string) error {
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, info.Mode().Perm())
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), own(file, info))
}

func own(path string, info fs.FileInfo) error {
	if os.Geteuid() != 0 {
		return nil
	}
	stat := info.Sys().(*syscall.Stat_t)
	return os.Chown(path, int(stat.Uid), int(stat.Gid))
}

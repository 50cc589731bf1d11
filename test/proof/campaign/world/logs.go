package world

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// keepLogs copies the logs of servers to Options.Dir.
func (w *World) keepLogs() error {
	entries, err := os.ReadDir(w.services.base)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name, of, _ := strings.Cut(e.Name(), "@")
		switch of {
		case w.Options.Instance + spare:
			name += "-" + spare
		case w.Options.Instance:
		default:
			continue
		}
		errs = append(errs, copyLog(filepath.Join(w.services.dir(e.Name()), "log"), filepath.Join(w.Options.Dir, "server-"+name+".log")))
	}
	return errors.Join(errs...)
}

func copyLog(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// Versions returns the versions of the binary and of the servers that report one.
func (w *World) Versions(ctx context.Context) map[string]string {
	versions := map[string]string{}
	add := func(name, version string, err error) {
		if err == nil {
			versions[name] = strings.TrimSpace(version)
		}
	}
	primary, _ := w.database.roles()
	err := primary.as(ctx, "postrider", func(conn *pgx.Conn) error {
		var version string
		err := conn.QueryRow(ctx, "SHOW server_version").Scan(&version)
		add("postgres", version, err)
		return err
	})
	_ = err // then it is not in the list
	for name, argv := range map[string][]string{
		"postrider": {w.Options.Postrider, "version"},
		"pgbouncer": {"/usr/sbin/pgbouncer", "--version"},
		"redis":     {"/usr/bin/redis-server", "--version"},
	} {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		first, _, _ := strings.Cut(string(out), "\n")
		add(name, first, err)
	}
	programs, _ := filepath.Glob(filepath.Join(w.services.base, "programs", "*"))
	for _, program := range programs {
		for _, name := range []string{"kafka", "nats-server"} {
			if version, ok := strings.CutPrefix(filepath.Base(program), name+"-"); ok {
				versions[name] = version
			}
		}
	}
	return versions
}

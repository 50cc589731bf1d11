package throwaway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// account is the user that the server runs as: the caller, or another user if the caller is root,
// as which PostgreSQL refuses to run.
type account struct {
	name     string
	uid, gid int
	other    bool // not the caller
}

// serverAccount returns an unprivileged account if the caller is root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		gid, err1 := strconv.Atoi(u.Gid)
		if errors.Join(err, err1) == nil && uid != 0 {
			return &account{name, uid, gid, true}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody: run it as another user")
}

// command prepares a program that runs as the account in a session of its own, so that Ctrl-C does
// not reach it.
func (a *account) command(ctx context.Context, folder, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = folder
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") { // those are for clients of another server
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.SysProcAttr = a.attributes()
	return cmd
}

// own makes the account the owner of a file.
func (a *account) own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// reaches returns an error if the account cannot enter a folder.
func (a *account) reaches(path string) error {
	if !a.other {
		return nil
	}
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	for ; err == nil; path = filepath.Dir(path) {
		var info os.FileInfo
		if info, err = os.Stat(path); err == nil && info.Mode()&0o001 == 0 {
			return fmt.Errorf("user %s, who runs PostgreSQL because root may not, cannot enter %s", a.name, path)
		}
		if path == filepath.Dir(path) {
			break
		}
	}
	return err
}

package throwaway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// folder holds all files of one server. The process that uses it holds its lock, which the kernel
// releases when the process ends.
//
//	data      created by initdb, for the server only
//	lock      held while in use
//	log       output of the server
//	password  of user postgres
//	url       the address of the server, with the password
//	dev.pid   the process that uses it
type folder struct {
	path   string
	kept   bool
	who    *account
	lock   *os.File
	record string // the file through which others find it
}

// openFolder creates a folder, or reuses the one that is kept, and locks it.
func openFolder(ctx context.Context, keep string, who *account) (_ *folder, err error) {
	f := &folder{path: keep, kept: keep != "", who: who}
	if !f.kept {
		if f.path, err = os.MkdirTemp("", "postrider-dev-"); err != nil {
			return nil, err
		}
	} else if f.path, err = f.create(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if who.other && !f.kept {
		if err := os.Chmod(f.path, 0o711); err != nil {
			return nil, err
		}
	}
	if err := who.reaches(f.path); err != nil {
		return nil, fmt.Errorf("%w: choose a folder elsewhere with --keep or $TMPDIR", err)
	}
	if f.lock, err = lockFolder(f.path); err != nil {
		return nil, err
	}
	if err := stopLeftover(ctx, f.path); err != nil {
		return nil, err
	}
	// Keep the password out of repositories.
	if err := errors.Join(f.write(".gitignore", "*\n"), f.write("dev.pid", strconv.Itoa(os.Getpid())+"\n")); err != nil {
		return nil, err
	}
	f.record, err = addRecord(f)
	return f, err
}

// create creates the folder that is kept, unless it exists.
func (f *folder) create() (string, error) {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(path, "lock")); err != nil {
			return "", fmt.Errorf("%s holds other things: name a folder that is new, or empty", path)
		}
		return path, nil
	}
	mode := os.FileMode(0o700)
	if f.who.other {
		mode = 0o711
	}
	return path, os.MkdirAll(path, mode)
}

// lockFolder returns an open file that locks the folder.
func lockFolder(path string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s is in use by another process: %w", path, err)
	}
	return file, nil
}

func (f *folder) data() string { return filepath.Join(f.path, "data") }

// write writes a small file that only its owner can read.
func (f *folder) write(name, content string) error {
	return os.WriteFile(filepath.Join(f.path, name), []byte(content), 0o600)
}

func (f *folder) password() (string, error) {
	text, err := os.ReadFile(filepath.Join(f.path, "password"))
	return string(bytes.TrimSpace(text)), err
}

func (f *folder) initialised() bool { return f.major() != 0 }

// major returns the version of PostgreSQL that has written the data, or 0 if there is none.
func (f *folder) major() int {
	text, err := os.ReadFile(filepath.Join(f.data(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text))) // invalid content counts as none
	return major
}

// initialise creates the data atomically.
func (f *folder) initialise(ctx context.Context, p Program) error {
	fresh, secret := f.data()+".new", filepath.Join(f.path, "password")
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(f.data()), os.Mkdir(fresh, 0o700), f.who.own(fresh)); err != nil {
		return err
	}
	if err := errors.Join(f.write("password", rand.Text()+"\n"), f.who.own(secret)); err != nil {
		return err
	}
	initdb := f.who.command(ctx, f.path, filepath.Join(p.Folder, "initdb"), "-D", fresh, "-U", "postgres", "--pwfile", secret,
		"-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Cancel = func() error { return endGroup(initdb.Process) }
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", errors.Join(err, ctx.Err()), bytes.TrimSpace(out))
	}
	return os.Rename(fresh, f.data())
}

// close releases the folder, and removes it unless it is kept.
func (f *folder) close() error {
	var errs []error
	if f.kept {
		errs = append(errs, remove(filepath.Join(f.path, "dev.pid")), remove(filepath.Join(f.path, "url")))
	} else {
		errs = append(errs, os.RemoveAll(f.path))
	}
	if f.record != "" {
		errs = append(errs, remove(f.record))
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

// remove removes a file. It is no error if the file does not exist.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

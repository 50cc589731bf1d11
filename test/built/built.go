// Package built compiles the programs of this repository once for all tests that run them.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Program compiles the program in a folder of the repository, such as "cmd/postrider", and returns
// its path. The binary is kept in bin/tests, where go build leaves it unchanged as long as its
// sources are.
func Program(t testing.TB, folder string) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	path, ok := ready[folder]
	if !ok {
		var err error
		if path, err = build(folder); err != nil {
			t.Fatal(err)
		}
		ready[folder] = path
	}
	return path
}

var (
	mu    sync.Mutex
	ready = make(map[string]string) // by this process
)

func build(folder string) (string, error) {
	workspace, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(workspace)))
	path := filepath.Join(root, "bin/tests", filepath.Base(folder))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	// Another process may build the same program; a half-written file must not be run.
	lock, err := os.Create(path + ".lock")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", path, "./"+folder)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", folder, err, out)
	}
	return path, nil
}

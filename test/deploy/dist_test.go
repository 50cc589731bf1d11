package deploy_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/internal/need"
)

const root = "../.."

func TestMain(m *testing.M) {
	code := m.Run()
	if released != "" {
		_ = os.RemoveAll(released)
	}
	os.Exit(code)
}

var released string // folder with this platform's archive and the program beside it

// dist builds a release for this platform only, with a version of its own.
func dist(out string, env ...string) ([]byte, error) {
	cmd := exec.Command(root+"/dev/dist", "--archives", "--target", runtime.GOOS+"/"+runtime.GOARCH, "--out", out)
	cmd.Env = append(os.Environ(), "VERSION=v1.2.3", "COMMIT=0123abcd", "SOURCE_DATE_EPOCH=1700000000")
	cmd.Env = append(cmd.Env, env...)
	return cmd.CombinedOutput()
}

var release = sync.OnceValues(func() ([]byte, error) {
	var err error
	if released, err = os.MkdirTemp("", "postrider-deploy"); err != nil {
		return nil, err
	}
	if err := os.Chmod(released, 0o755); err != nil { // the program also runs as other users
		return nil, err
	}
	if out, err := dist(released); err != nil {
		return out, err
	}
	return exec.Command("tar", "-C", released, "--strip-components=1", "-xzf", filepath.Join(released, archive())).CombinedOutput()
})

func archive() string { return "postrider_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz" }

// program returns the path of the released program.
func program(t *testing.T) string {
	t.Helper()
	if out, err := release(); err != nil {
		t.Fatalf("dev/dist: %v\n%s", err, out)
	}
	return filepath.Join(released, "postrider")
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestArchive(t *testing.T) {
	binary := program(t)
	if text := run(t, binary, "version"); !strings.Contains(text, "v1.2.3") || !strings.Contains(text, "0123abcd") {
		t.Errorf("version: %s", text)
	}
	listed := run(t, "tar", "-tzf", filepath.Join(released, archive()))
	for _, want := range []string{"/LICENSE\n", "/README.md\n", "/man/postrider-relay.1.gz\n", "/completions/_postrider\n", "/completions/postrider.fish\n"} {
		if !strings.Contains(listed, want) {
			t.Errorf("the archive has no %s", want)
		}
	}
	run(t, "bash", "-n", filepath.Join(released, "completions/postrider.bash"))
	if sums := read(t, filepath.Join(released, "SHA256SUMS")); !strings.Contains(sums, archive()) {
		t.Errorf("SHA256SUMS: %s", sums)
	}
}

// TestFormula checks that the formula of a release installs the archives beside it, each on its
// platform, and that its checksum is one of those that are signed.
func TestFormula(t *testing.T) {
	program(t)
	every := t.TempDir()
	blocks := map[string][2]string{
		"darwin_amd64": {"on_macos", "on_intel"}, "darwin_arm64": {"on_macos", "on_arm"},
		"linux_amd64": {"on_linux", "on_intel"}, "linux_arm64": {"on_linux", "on_arm"},
	}
	for platform := range blocks {
		if err := os.WriteFile(filepath.Join(every, "postrider_1.2.3_"+platform+".tar.gz"), []byte(platform), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{every, released} {
		archives, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
		if err != nil || len(archives) == 0 {
			t.Fatalf("%s has no archives: %v", dir, err)
		}
		text := run(t, root+"/deploy/package/formula", archives...)
		if dir == released && read(t, filepath.Join(dir, "postrider.rb")) != text {
			t.Error("dev/dist has written another formula")
		}
		if n := strings.Count(text, "url "); n != len(archives) {
			t.Errorf("%d addresses for %d archives\n%s", n, len(archives), text)
		}
		for _, path := range archives {
			file := filepath.Base(path)
			at := blocks[strings.TrimSuffix(strings.TrimPrefix(file, "postrider_1.2.3_"), ".tar.gz")]
			_, system, _ := strings.Cut(text, "\n  "+at[0]+" do\n")
			system, _, _ = strings.Cut(system, "\n  end\n")
			want := fmt.Sprintf("    %s do\n      url %q\n      sha256 \"%x\"\n    end", at[1],
				"https://github.com/postrider/postrider/releases/download/v1.2.3/"+file, sha256.Sum256([]byte(read(t, path))))
			if !strings.Contains(system, want) {
				t.Errorf("no\n%s\nin %s of\n%s", want, at[0], text)
			}
		}
	}
	listed := run(t, "tar", "-tzf", filepath.Join(released, archive()))
	installed := regexp.MustCompile(`install "([^"]+)"`).FindAllStringSubmatch(read(t, filepath.Join(released, "postrider.rb")), -1)
	if len(installed) < 4 {
		t.Errorf("the formula installs only %q", installed)
	}
	for _, file := range installed {
		if !strings.Contains(listed, "/"+file[1]+"\n") {
			t.Errorf("the formula installs %s, which is not in the archive", file[1])
		}
	}
	if sums := read(t, filepath.Join(released, "SHA256SUMS")); !strings.Contains(sums, "  postrider.rb\n") {
		t.Errorf("SHA256SUMS: %s", sums)
	}
}

// TestFormulaRefuses checks that a formula is made of archives of one release only.
func TestFormulaRefuses(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{
		nil,
		{"postrider_1.2.3_linux_amd64.deb"},
		{"postrider_1.2.3_plan9_amd64.tar.gz"},
		{"postrider_1.2.3_linux_amd64.tar.gz", "postrider_1.2.4_linux_arm64.tar.gz"},
		{"postrider_1.2.3_linux_amd64.tar.gz"}, // not there
	} {
		if out, err := exec.CommandContext(t.Context(), root+"/deploy/package/formula", names...).Output(); err == nil || len(out) > 0 {
			t.Errorf("%q: %v\n%s", names, err, out)
		}
	}
}

// TestSameBytes checks that building a release again gives the same bytes.
func TestSameBytes(t *testing.T) {
	need.Long(t, "builds and packs the release twice")
	binary := program(t)
	again := t.TempDir()
	if out, err := dist(again, "TMPDIR="+t.TempDir(), "TZ=Asia/Tokyo"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first := sha256.Sum256([]byte(read(t, filepath.Join(released, archive()))))
	second := sha256.Sum256([]byte(read(t, filepath.Join(again, archive()))))
	if first != second {
		t.Errorf("%x is not %x, or somebody has changed the sources meanwhile", second, first)
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if text := []byte(read(t, binary)); bytes.Contains(text, []byte(here+"/cmd")) {
		t.Errorf("the program says that it was built in %s", here)
	}
}

// Package start_test acts as a new reader: it runs the commands of the documentation, from the
// clone to the first message, exactly as they are written there.
package start_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/internal/need"
)

// TestFiveMinutes runs the commands of README.md. Modules and the standard library are already in
// Go's caches: the time of a first download and compilation depends on the network and the machine.
func TestFiveMinutes(t *testing.T) {
	reader := newReader(t)
	took := reader.follow(blocks(t, "README.md", "Five minutes"), `"payload":{"total": 7}`)
	reader.sees(`"item":"saddle"`)
	fmt.Printf("README.md: %.1f s from clone to first message, with warm caches\n", took.Seconds())
	if took > 5*time.Minute {
		t.Errorf("the first message took %v", took)
	}
}

// TestQuickStart runs the commands of docs/quick-start.md, including the crash.
func TestQuickStart(t *testing.T) {
	reader := newReader(t)
	commands := blocks(t, "docs/quick-start.md", "")
	crash, last := slices.IndexFunc(commands, func(block string) bool { return strings.Contains(block, "--keep") }), len(commands)-1
	took := reader.follow(commands[:crash], `"payload":{"total": 7}`)
	reader.sees(`"item":"saddle"`) // as a reader sees it, before the database is killed
	reader.follow(commands[crash:last], "")
	if strings.Contains(reader.first.shown(), `{"total": 8}`) {
		t.Fatal("the message was published before the crash, which then shows nothing")
	}
	reader.follow(commands[last:], "")
	reader.sees(`"payload":{"total": 8}`)
	fmt.Printf("docs/quick-start.md: %.1f s from clone to first message, with warm caches\n", took.Seconds())
}

// TestSecondService runs the commands of docs/second-service.md in three terminals: all that a
// second service needs.
func TestSecondService(t *testing.T) {
	server, err := redis.ParseURL(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	server.DB = 9 // used by no other test
	client := redis.NewClient(server)
	empty := func() {
		if err := client.FlushDB(context.WithoutCancel(t.Context())).Err(); err != nil {
			t.Error(err)
		}
	}
	empty()
	t.Cleanup(empty)
	reader := newReader(t)
	var commands []string
	for _, block := range blocks(t, "docs/second-service.md", "") {
		commands = append(commands, strings.ReplaceAll(block, "redis://localhost:6379", "redis://"+server.Addr+"/9"))
	}
	began := time.Now()
	reader.follow(commands[:1], "")
	second := newTerminal(t, reader.first.folder, reader.env)
	second.run(commands[1])
	save(t, filepath.Join(reader.first.folder, "billing", "main.go"), "docs/second-service.md", "redis://"+server.Addr+"/9")
	billing := second.enter(commands[2])
	third := newTerminal(t, reader.first.folder, reader.env)
	sees := func(text string) {
		t.Helper()
		second.until(text, billing, func() bool { return strings.Contains(second.shown(), text) })
	}
	sees("billing is ready")
	third.run(commands[3])
	sees("order 42 is charged: 7")
	took := time.Since(began)
	third.run(commands[4])
	sees("order 43 is charged: 8")
	third.run(commands[5])
	if !strings.Contains(third.shown(), "nothing to charge") {
		t.Errorf("no dead letter in %s", third.shown())
	}
	if n := strings.Count(second.shown(), "order 42 is charged"); n != 1 {
		t.Errorf("order 42 was charged %d times", n)
	}
	fmt.Printf("docs/second-service.md: %.1f s from clone to first charge, with warm caches\n", took.Seconds())
	if took > 2*time.Minute {
		t.Errorf("the first charge took %v", took)
	}
}

// save writes the program of a page into a file, with the address of the local server.
func save(t *testing.T, file, page, server string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(text), "\n```go\n")
	program, _, _ = strings.Cut(program, "\n```")
	if !found || os.WriteFile(file, []byte(strings.ReplaceAll(program, "redis://localhost:6379", server)+"\n"), 0o644) != nil {
		t.Fatalf("%s: no program, or %s cannot be written", page, file)
	}
}

// reader has two terminals: long-running programs run in the first, everything else in the second.
type reader struct {
	t      *testing.T
	origin string
	env    []string
	first  *terminal
	second *terminal
	dev    *typed // running in the first
}

// newReader creates a reader with a repository to clone from: this one, including uncommitted
// changes.
func newReader(t *testing.T) *reader {
	t.Helper()
	// A fixed path lets Go's build cache work, which identifies packages by their folders. If this
	// test runs as root, servers run as another user, so everyone may enter.
	home := filepath.Join(os.TempDir(), fmt.Sprintf("postrider-start-%d", os.Getuid()))
	for _, err := range []error{os.RemoveAll(home), os.Mkdir(home, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	r := &reader{t: t, origin: filepath.Join(t.TempDir(), "postrider")}
	r.env = append(without("DATABASE_URL=", "POSTRIDER_", "PG"), "XDG_CACHE_HOME="+t.TempDir(), "GOCACHE="+goCache(t))
	publish(t, r.origin)
	r.first = newTerminal(t, home, r.env)
	return r
}

// follow runs blocks one after the other, and returns the time from the first block until a text
// was first seen.
func (r *reader) follow(all []string, text string) (took time.Duration) {
	r.t.Helper()
	began := time.Now()
	for _, block := range all {
		block = strings.ReplaceAll(block, published, r.origin)
		if stays(block) {
			if r.dev != nil && r.dev.running() {
				r.first.interrupt(r.dev)
			}
			r.dev = r.first.enter(block)
			r.first.until("it is ready", r.dev, func() bool { return strings.Contains(r.dev.err.String(), "In another terminal:") })
			continue
		}
		if r.second == nil {
			r.second = newTerminal(r.t, r.first.folderNow(), r.env)
		}
		r.second.run(block)
		if strings.Contains(block, "kill -9") {
			<-r.dev.ended
		}
		if took == 0 && text != "" {
			r.sees(text)
			took = time.Since(began)
		}
	}
	return took
}

// sees waits until the first terminal shows a text.
func (r *reader) sees(text string) {
	r.t.Helper()
	r.first.until(text, r.dev, func() bool { return strings.Contains(r.first.shown(), text) })
}

// goCache returns Go's build cache of this machine; the reader's own cache is empty.
func goCache(t *testing.T) string {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(path))
}

// publish creates a repository of all files here that are not ignored, committed or not.
func publish(t *testing.T, origin string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(list), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(origin, name)); err != nil && !os.IsNotExist(err) { // deleted, or gone meanwhile
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "--all"},
		{"-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "as it is here"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", origin}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, bytes.TrimSpace(out))
		}
	}
}

func copyFile(from, to string) (err error) {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if closed := target.Close(); err == nil {
		err = closed
	}
	return err
}

package readme

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/docs/scratch"
)

// TestProgram builds the program from README.md in a new module, and waits until its order was
// charged.
func TestProgram(t *testing.T) {
	const top = "../../../.."
	page, err := os.ReadFile(filepath.Join(top, "README.md"))
	must(t, err)
	_, program, ok := strings.Cut(string(page), "```go\npackage main\n")
	program, _, ends := strings.Cut(program, "\n```\n")
	if !ok || !ends {
		t.Fatal("README.md has no program")
	}

	// The tests' servers have other addresses, and other tests use them too.
	url := need.Env(t, "POSTRIDER_TEST_NATS", "nats")
	prefix := "readme" + strings.ReplaceAll(time.Now().Format("150405.000000"), ".", "")
	program = strings.NewReplacer("nats://localhost:4222", url, "order.placed", prefix+".placed", "order.>", prefix+".>").Replace(program)

	folder := t.TempDir()
	absolute, err := filepath.Abs(top)
	must(t, err)
	var mod strings.Builder
	mod.WriteString("module app\n\ngo 1.26.0\n")
	for path, at := range map[string]string{"": "", "/broker/nats": "/broker/nats", "/store/postgres": "/store/postgres"} {
		mod.WriteString("require github.com/postrider/postrider" + path + " v0.0.0\n")
		mod.WriteString("replace github.com/postrider/postrider" + path + " => " + absolute + at + "\n")
	}
	must(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(mod.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n"+program), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", "app", ".")
	build.Dir, build.Env = folder, append(os.Environ(), "GOWORK=off", "GONOSUMDB=*")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	conn, err := client.Connect(url)
	must(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: prefix, Subjects: []string{prefix + ".>"}})
	must(t, err)
	t.Cleanup(func() { _ = js.DeleteStream(t.Context(), prefix) })
	pool, _ := scratch.Open(t, "CREATE TABLE orders (id text PRIMARY KEY, cents int)", "CREATE TABLE charges (order_id text PRIMARY KEY, cents int)")
	var said bytes.Buffer
	run := exec.CommandContext(t.Context(), filepath.Join(folder, "app"))
	run.Env, run.Stdout, run.Stderr = append(os.Environ(), "DATABASE_URL="+pool.Config().ConnString()), &said, &said
	must(t, run.Start())
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	scratch.Await(t, pool, "SELECT count(*) FROM charges WHERE cents = 700", 1)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

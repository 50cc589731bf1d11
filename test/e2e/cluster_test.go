package e2e_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/said"
)

// cluster is a PostgreSQL server owned by one test, which may copy its files, stop it and replace
// it.
type cluster struct {
	t         *testing.T
	bin, data string
	address   string // host and port
	stop      func() // stops the server cleanly
	said      said.Buffer
}

// newCluster creates an empty server with the programs in bin, without starting it.
func newCluster(t *testing.T, bin string, options ...string) *cluster {
	t.Helper()
	c := clusterAt(t, bin, filepath.Join(serverFolder(t), "data"))
	c.run("initdb", append([]string{"-D", c.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"}, options...)...)
	return c
}

// clusterAt returns a server whose data are, or will be, in a folder.
func clusterAt(t *testing.T, bin, data string) *cluster {
	return &cluster{t: t, bin: bin, data: data, address: port.For(t)}
}

// serverFolder returns a folder that servers can write to. Their user may have no access to the
// test's folders.
func serverFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "postrider-e2e-") //nolint:usetesting // reached by another user, and short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if owner := serverUser(t); owner != nil {
		if err := os.Chown(folder, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// serverUser returns the user for servers, because PostgreSQL refuses to run as root. nil is the
// test's own user.
func serverUser(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15_DATA"))
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	return &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
}

func (c *cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, program), args...)
	cmd.Dir = filepath.Dir(c.data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: serverUser(c.t)}
	return cmd
}

// run runs one of the server's programs as the user that owns the files.
func (c *cluster) run(program string, args ...string) {
	c.t.Helper()
	if out, err := c.command(c.t.Context(), program, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// start starts the server until the test ends, and returns when it serves clients.
func (c *cluster) start(settings ...string) *cluster {
	c.t.Helper()
	host, number, err := net.SplitHostPort(c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	args := []string{"-D", c.data, "-p", number}
	for _, s := range append([]string{"listen_addresses=" + host, "unix_socket_directories=", "fsync=off", "shared_buffers=32MB", "wal_level=logical", "wal_keep_size=512MB"}, settings...) {
		args = append(args, "-c", s)
	}
	cmd := c.command(context.WithoutCancel(c.t.Context()), "postgres", args...)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT // a killed test leaves no server behind
	cmd.Stdout, cmd.Stderr = &c.said, &c.said
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the kernel sends the signal when this thread ends
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its output has the reason
		}
	}()
	if err := <-started; err != nil {
		c.t.Fatal(err)
	}
	c.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // does not wait for clients
		<-ended
	})
	c.t.Cleanup(c.stop)
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := pgx.Connect(c.t.Context(), c.dsn("postgres"))
		if err == nil {
			_ = conn.Close(c.t.Context())
			return c
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the server does not answer: %v\n%s", err, c.said.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *cluster) dsn(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", c.address, database)
}

// exec runs statements one at a time, for a test that shares the server.
func (c *cluster) exec(t *testing.T, database string, statements ...string) {
	t.Helper()
	execute(t, c.dsn(database), statements...)
}

func execute(t *testing.T, dsn string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// snapshot copies the files of the running server, as a backup does. wal_keep_size keeps
// checkpoints from removing the WAL written meanwhile.
func (c *cluster) snapshot(t *testing.T, to string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "SELECT pg_backup_start('snapshot', true)"); err != nil {
		t.Fatal(err)
	}
	// The server renames and removes files meanwhile, including WAL, and cp reports errors for
	// them. Replaying the WAL repairs the copy; a server whose WAL ends before the backup did
	// refuses to start.
	_ = exec.CommandContext(t.Context(), "cp", "-a", c.data, to).Run()
	var label string
	if err := conn.QueryRow(t.Context(), "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		t.Fatal(err)
	}
	_ = exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(c.data, "pg_wal"), to).Run()
	if err := os.WriteFile(filepath.Join(to, "backup_label"), []byte(label), 0o644); err != nil {
		t.Fatal(err)
	}
	if owner := serverUser(t); owner != nil {
		if err := os.Chown(filepath.Join(to, "backup_label"), int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(to, "postmaster.pid")); err != nil {
		t.Fatal(err)
	}
}

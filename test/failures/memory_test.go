package failures_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/said"
)

// TestMemory delivers large messages with a relay process. All arrive, and the process never
// exceeds its memory limit.
func TestMemory(t *testing.T) {
	need.Alone(t, "uses much of the disk")
	for _, c := range []struct {
		messages, bytes int
		limit           int // MiB
		link            int // bytes per second between the relay and its database; 0: unlimited
	}{
		{pick(600, 12_000), 100 << 10, pick(128, 256), 0},
		{pick(60, 4000), 1_000_000, pick(128, 256), 0},
		{pick(300, 3000), 100 << 10, pick(128, 256), 25_000_000}, // 200 Mbit/s
	} {
		name := fmt.Sprintf("%d of %d bytes", c.messages, c.bytes)
		if c.link > 0 {
			name += " over a slow link"
		}
		t.Run(name, func(t *testing.T) {
			s := newScene(t, newest(t), postgres.Layout{})
			var msgs []postrider.Message
			for i := range c.messages {
				m := numbered("", "k"+strconv.Itoa(i%100), i)
				m.Payload = append(append(m.Payload, '\n'), bytes.Repeat([]byte("large "), c.bytes/6)...)
				if msgs = append(msgs, m); len(msgs) == 20 || i == c.messages-1 {
					s.enqueue(msgs...)
					msgs = nil
				}
			}
			e := newEndpoint(t, nil)
			dsn := s.pool.Config().ConnString()
			if c.link > 0 {
				dsn = throttle(t, dsn, c.link)
			}
			began := time.Now()
			p := s.process(dsn, c.limit, "relay", "--to", e.URL, "--set", "allow_loopback=true")
			s.eventually(15*time.Second, "the first ones have arrived", func() bool { n, _ := e.count(); return n > 0 })
			first := time.Since(began)
			s.eventually(10*time.Minute, "all have arrived", func() bool { n, _ := e.count(); return n == c.messages })
			took := time.Since(began)
			most := p.peak()
			t.Logf("%d messages arrived in %v, the first after %v; at most %d MiB, limit %d MiB", c.messages, took, first, most, c.limit)
			if most == 0 || most > c.limit {
				t.Errorf("the process had %d MiB, want at most %d MiB", most, c.limit)
			}
			e.checkOrder(t)
			if _, repeated := e.count(); repeated > 0 {
				t.Errorf("%d were repeated", repeated)
			}
			if counts := s.count(); counts[feeds.StatusDead] > 0 {
				t.Errorf("deferred are %v, want none dead", counts)
			}
		})
	}
}

// process is the program, running until the test ends.
type process struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	most int // MiB
}

// process starts the program in a control group limited to the given MiB. Without control groups,
// it sets the garbage collector as it would be in one.
func (s *scene) process(dsn string, limit int, args ...string) *process {
	s.t.Helper()
	args = append([]string{built.Program(s.t, "cmd/postrider")}, append(args, "--schema", s.cfg.Schema)...)
	env := append(os.Environ(), "DATABASE_URL="+dsn)
	if group := newGroup(s.t, limit); group != "" {
		args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(group, "cgroup.procs")}, args...)
	} else {
		s.t.Logf("no control group: GOMEMLIMIT instead")
		env = append(env, fmt.Sprintf("GOMEMLIMIT=%dMiB", limit/4*3))
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = env
	var out said.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p := &process{cmd: cmd}
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("postrider %v: %v", args, err)
		}
		if s.t.Failed() {
			s.t.Logf("postrider %v said:\n%s", args, out.String())
		}
	})
	go p.sample()
	return p
}

// newGroup creates a control group for the test, of either version. It returns "" if that is not
// permitted.
func newGroup(t *testing.T, limit int) string {
	for _, c := range []struct{ folder, file string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		group, err := os.MkdirTemp(c.folder, "postrider-test-") //nolint:usetesting // only the kernel makes files there
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		})
		if os.WriteFile(filepath.Join(group, c.file), []byte(strconv.Itoa(limit<<20)), 0o644) == nil {
			return group
		}
	}
	return ""
}

// sample records the memory of the process until it ends. It excludes the pages of the program's
// file: they belong to the page cache, and how many are mapped depends on how the file was written
// (twice as many after a build as after a copy).
func (p *process) sample() {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			return
		}
		p.mu.Lock()
		p.most = max(p.most, figure(status, "VmHWM:")-figure(status, "RssFile:"))
		p.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
}

// figure returns a line of a process's status, in MiB, or 0 if it is missing.
func figure(status []byte, name string) int {
	_, rest, ok := strings.Cut(string(status), name)
	if !ok {
		return 0
	}
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kib >> 10
}

// peak returns the largest amount of memory that the process has used, in MiB.
func (p *process) peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// throttle returns the address of a proxy to a server that limits the bytes per second from it,
// over all connections.
func throttle(t *testing.T, dsn string, rate int) string {
	t.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	target := address.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	line := &line{rate: rate}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					_, _ = io.Copy(server, client)
					_ = server.Close()
				}()
				buf := make([]byte, 32<<10)
				for {
					n, err := server.Read(buf)
					line.wait(n)
					if _, failed := client.Write(buf[:n]); err != nil || failed != nil {
						return
					}
				}
			}()
		}
	}()
	address.Host = l.Addr().String()
	return address.String()
}

// line is a link with a limited rate.
type line struct {
	rate int
	mu   sync.Mutex
	free time.Time // when it has transmitted everything so far
}

func (l *line) wait(n int) {
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
	free := l.free
	l.mu.Unlock()
	time.Sleep(time.Until(free))
}

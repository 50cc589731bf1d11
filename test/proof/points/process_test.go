package points

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/test/proof/points/tap"
)

// variable makes the test binary run a process of a scenario.
const variable = "POSTRIDER_TEST_POINTS_PROCESS"

// part configures a process: its role, its servers, and its fault.
type part struct {
	Role   string // see roles
	DSN    string
	Schema string
	Broker string // nats or rabbitmq
	URL    string // of the broker
	Name   string // of the case: names its stream, consumer and saga
	Topic  string // to receive from

	Point  string // of the fault; empty: none
	Way    tap.Way
	Limits map[string]int // overrides how many calls of a name are points,
	Only   bool           // and with Only excludes all other names

	Relay  relay.Config
	Slow   time.Duration // additional duration of a call to the destination
	Batch  bool          // the inbox has a batch handler
	Fails  string        // the step of the saga that fails, or whose connection breaks
	Dead   bool          // replay dead letters
	Acts   bool          // retry dead letters by an act instead of a replay
	Joins  bool          // another process starts the replay
	Pauses bool          // the replay is paused and resumed
}

// roles are the possible roles of a process. They end with ctx, or when they are done.
var roles = map[string]func(ctx context.Context, p part, gate *tap.Gate) error{
	"relay": runRelay, "inbox": runInbox, "saga": runSaga, "replay": runReplay,
}

func TestMain(m *testing.M) {
	told := os.Getenv(variable)
	if told == "" {
		os.Exit(m.Run())
	}
	var p part
	err := json.Unmarshal([]byte(told), &p)
	if err == nil {
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil)))
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err = roles[p.Role](ctx, p, &tap.Gate{Point: p.Point, Way: p.Way, Events: os.NewFile(3, "events"), Limit: p.limit})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is a process that runs or has ended.
type process struct {
	cmd    *exec.Cmd
	struck chan struct{} // closed after the fault
	done   chan struct{} // closed after the end
	err    error         // result of the process

	mu     sync.Mutex
	points map[string]int // how often it has passed each name
	log    bytes.Buffer
}

// start starts a process, which ends with the test at the latest.
func start(t *testing.T, p part) *process {
	t.Helper()
	told, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pr := &process{cmd: exec.Command(os.Args[0]), struck: make(chan struct{}), done: make(chan struct{}), points: make(map[string]int)}
	pr.cmd.Env = append(os.Environ(), variable+"="+string(told))
	pr.cmd.Stderr = pr
	pr.cmd.ExtraFiles = []*os.File{write}
	err = pr.cmd.Start()
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pr.cmd.Process.Kill()
		<-pr.done
	})
	go func() {
		pr.listen(bufio.NewScanner(read))
		_ = read.Close()
		pr.err = pr.cmd.Wait()
		close(pr.done)
	}()
	return pr
}

// listen reads the events of the gate.
func (p *process) listen(lines *bufio.Scanner) {
	for lines.Scan() {
		point, ok := strings.CutPrefix(lines.Text(), "point ")
		if !ok {
			close(p.struck)
			continue
		}
		name := point[:strings.LastIndex(point, " ")]
		p.mu.Lock()
		p.points[name]++
		p.mu.Unlock()
	}
}

// Write records the output of the process.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// passed returns how often the process has passed each name so far.
func (p *process) passed() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.points)
}

func (p *process) hasStruck() bool { return closed(p.struck) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// stop stops the process and waits for it. It returns an error unless it ended cleanly.
func (p *process) stop(timeout time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return p.err
	case <-time.After(timeout):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.done
		return errors.New("it did not end")
	}
}

// killed reports whether the process was killed.
func (p *process) killed() bool {
	var exit *exec.ExitError
	return errors.As(p.err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/proof/campaign/fault"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// scene is a world with a process in every role, to try faults on.
type scene struct {
	*testing.T
	*world.World
	kinds map[string]fault.Kind

	receiver *receiver
}

// receiver stands in for the webhook receiver. It only records its instructions.
type receiver struct {
	mu   sync.Mutex
	told []string
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

func (r *receiver) control(_ http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, request.URL.Query().Get("answer")+" "+request.URL.Query().Get("share"))
}

// newScene starts a world. Outside the long tier it has only servers that start quickly.
func newScene(t *testing.T) *scene {
	t.Helper()
	ctx := t.Context()
	bin := filepath.Join(t.TempDir(), "postrider")
	build(t, bin)
	options := world.Options{Dir: t.TempDir(), Postrider: bin, Instance: "faults", Note: func(e record.Event) { t.Log(e.Target, e.Detail) }}
	if need.IsLong() {
		options.Older = bin + "-older"
		if err := exec.Command("cp", bin, options.Older).Run(); err != nil {
			t.Fatal(err)
		}
		options.Skewed = bin + "-skewed"
		if err := world.BuildSkewed(ctx, options.Skewed); err != nil {
			t.Fatal(err)
		}
	} else {
		options.Without = []string{world.Kafka, world.RabbitMQ, world.NATS}
	}
	s := &scene{T: t, kinds: map[string]fault.Kind{}, receiver: &receiver{}}
	for _, k := range fault.Kinds() {
		s.kinds[k.Name] = k
	}
	began := time.Now()
	var err error
	if s.World, err = world.Start(ctx, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	t.Logf("the world was ready after %v", time.Since(began).Round(time.Second))
	s.people()
	return s
}

// build builds the command from source, unless POSTRIDER_BIN names a binary.
func build(t *testing.T, target string) {
	t.Helper()
	ready := os.Getenv("POSTRIDER_BIN")
	if ready == "" {
		ready = built.Program(t, "cmd/postrider")
	}
	cmd := exec.Command("cp", ready, target)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
}

// people starts a process for every role: a receiver that records its instructions, relays, and
// processes that only exist.
func (s *scene) people() {
	s.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /control", s.receiver.control)
	mux.HandleFunc("POST /hooks/{name}", func(http.ResponseWriter, *http.Request) {})
	l, err := net.Listen("tcp", s.ReceiverAddress())
	if err != nil {
		s.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(l) }()
	s.Cleanup(func() { _ = server.Close() })
	s.stream()
	if err := s.StartRelays(s.Context()); err != nil {
		s.Fatal(err)
	}
	for _, role := range []world.Role{world.Producer, world.Consumer, world.Receiver, world.Guest} {
		if _, err := s.Spawn(world.Program{
			Name: string(role) + "1", Role: role, Path: "sleep", Args: []string{"86400"}, Metrics: "http://" + s.ReceiverAddress() + "/metrics",
			Idle: role == world.Guest,
		}); err != nil {
			s.Fatal(err)
		}
	}
	s.exec(s.AdminDSN(), "CREATE TABLE facts (name text)")
}

// stream creates a stream, for which the NATS servers elect a leader.
func (s *scene) stream() {
	s.Helper()
	if s.Broker(world.NATS) == "" || !need.IsLong() {
		return
	}
	conn, err := nats.Connect(s.Broker(world.NATS))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		s.Fatal(err)
	}
	_, err = js.CreateStream(s.Context(), jetstream.StreamConfig{Name: "CAMPAIGN", Subjects: []string{world.NATS}, Replicas: 3})
	if err != nil {
		s.Fatal(err)
	}
}

// begin begins a fault. With a target it tries seeds until the target is hit.
func (s *scene) begin(kind, target string) *fault.Running {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Minute)
	defer cancel()
	for seed := range uint64(1000) {
		r, err := s.kinds[kind].Begin(ctx, s.World, rand.New(rand.NewPCG(seed, 0)))
		if err != nil {
			s.Fatalf("%s: %v", kind, err)
		}
		if target == "" || r.Target == target {
			s.Logf("%s hits %s %s; touches %v", kind, r.Target, r.Detail, r.Touches)
			return r
		}
		s.heal(r)
	}
	s.Fatalf("%s never hits %s", kind, target)
	return nil
}

func (s *scene) heal(r *fault.Running) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Minute)
	defer cancel()
	if err := r.Heal(ctx); err != nil {
		s.Fatalf("healing: %v", err)
	}
}

// exec runs a statement on a separate connection, and fails the test on an error.
func (s *scene) exec(dsn, sql string) {
	s.Helper()
	if err := s.try(dsn, sql, 30*time.Second); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// try runs a statement with a timeout.
func (s *scene) try(dsn, sql string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// ask returns the single value of a query on the primary.
func (s *scene) ask(sql string) string {
	s.Helper()
	conn, err := s.Connect(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(s.Context())
	var value string
	if err := conn.QueryRow(s.Context(), sql).Scan(&value); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	return value
}

func (s *scene) expect(sql, want string) {
	s.Helper()
	if got := s.ask(sql); got != want {
		s.Fatalf("%s: %s, want %s", sql, got, want)
	}
}

// unanswered checks that a statement gets neither a response nor an error within a second.
func (s *scene) unanswered(dsn, sql string) {
	s.Helper()
	if err := s.try(dsn, sql, time.Second); !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("%s: %v, want no answer at all", sql, err)
	}
}

func (s *scene) eventually(what string, ok func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not within a minute", what)
		}
	}
}

// stopped reports whether a process is suspended by a signal.
func stopped(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "T")
}

package admissions

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/built"
)

// queues maps queues to their server and the variable with its address.
var queues = map[string]struct{ server, variable string }{
	"rabbitmq": {"rabbitmq", "POSTRIDER_TEST_RABBITMQ"},
	"nats":     {"nats", "POSTRIDER_TEST_NATS"},
	"asynq":    {"redis", "POSTRIDER_TEST_REDIS"},
}

// newStage runs the service with a queue until the test ends, with its own database and queues.
func newStage(t *testing.T, queue string) *stage.Stage {
	t.Helper()
	server := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	smtp, maildir := need.Env(t, "POSTRIDER_TEST_SMTP", "smtp"), need.Env(t, "POSTRIDER_TEST_MAILDIR", "smtp")
	address, err := url.Parse(need.Env(t, queues[queue].variable, queues[queue].server))
	if err != nil {
		t.Fatal(err)
	}
	if queue == "asynq" {
		address.Scheme, address.Path = "asynq", "/2" // Redis has numbered databases: this one is for these tests
	}
	config, err := filepath.Abs("../../examples/admissions/postrider.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("admissions_%s_%d_%d", queue, os.Getpid(), time.Now().UnixMilli())
	database, err := stage.CreateDatabase(ctx, server, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { after(t, func(ctx context.Context) error { return stage.DropDatabase(ctx, server, name) }) })
	settings := stage.Settings{
		Postrider:  built.Program(t, "cmd/postrider"),
		Admissions: built.Program(t, "examples/admissions"),
		Demo:       built.Program(t, "examples/admissions/demo"),
		Config:     config, Database: database, Queue: address.String(), SMTP: smtp, Maildir: maildir,
		Prefix: name + "_", Secret: "whsec_T25seSBmb3IgdGVzdHMgYWRtaXNzaW9u",
	}
	for _, a := range []*string{&settings.Network, &settings.Pages, &settings.Paydesk, &settings.Health, &settings.Console} {
		*a = port.For(t)
	}
	prepareQueues(t, queue, settings)
	s, err := stage.New(t.TempDir(), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after(t, func(ctx context.Context) error { return s.End(ctx, s.All()...) })
		if t.Failed() {
			logs(t, s)
		}
	})
	if err := s.Up(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// after registers cleanup that runs when the test's own context has ended.
func after(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Error(err)
	}
}

// logs logs the last output of all processes.
func logs(t *testing.T, s *stage.Stage) {
	t.Helper()
	for _, name := range s.All() {
		text, err := os.ReadFile(s.Log(name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		t.Logf("%s said:\n%s", name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
}

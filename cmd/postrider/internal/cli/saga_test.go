package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/saga"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

type sagaTrip struct {
	City string `json:"city"`
}

// runSaga runs a command line that has to do with sagas, and returns what it has printed.
func (c *cli) runSaga(args ...string) (out, messages string, err error) {
	c.t.Helper()
	var data, notes bytes.Buffer
	s := streams{in: strings.NewReader(c.answer), out: &data, err: &notes, asks: c.answer != ""}
	root, a := newRoot(s)
	root.SetArgs(append(append([]string{"saga"}, args...), "--dsn", c.dsn, "--schema", c.schema))
	err = root.ExecuteContext(c.t.Context())
	if err != nil {
		notes.WriteString(err.Error() + "\n" + a.hint(err, exitCode(c.t.Context(), err)))
	}
	return data.String(), notes.String(), err
}

// says runs a command line that has to succeed, and holds what it prints.
func (c *cli) says(want []string, args ...string) string {
	c.t.Helper()
	out, notes, err := c.runSaga(args...)
	if err != nil {
		c.t.Fatalf("saga %s: %v", strings.Join(args, " "), err)
	}
	for _, w := range want {
		if !strings.Contains(out+notes, w) {
			c.t.Errorf("saga %s: %q is missing in\n%s%s", strings.Join(args, " "), w, out, notes)
		}
	}
	return out
}

func (c *cli) refuses(want string, args ...string) {
	c.t.Helper()
	_, notes, err := c.runSaga(args...)
	if err == nil || !strings.Contains(notes, want) {
		c.t.Errorf("saga %s: %v, %q is missing in\n%s", strings.Join(args, " "), err, want, notes)
	}
}

// sagaStage has a saga that is stuck, one that waits and one that is done.
func sagaStage(c *cli) saga.Admin {
	c.t.Helper()
	c.must("migrate", "up")
	store, operator := c.database().Sagas(), c.database().SagaAdmin()
	fine := func(context.Context, pgx.Tx, *sagaTrip) error { return nil }
	fails := func(context.Context, pgx.Tx, *sagaTrip) error { return errors.New("bank is \x1b[31m down") }
	once := retry.Policy{Attempts: 1, First: time.Millisecond}
	book, err := saga.New(store, "book-trip", saga.Parallel(saga.Step("hotel", fine, fine), saga.Step("flight", fine, fails).RetryUndo(once)),
		saga.Wait("approval", func(_ context.Context, _ pgx.Tx, _ *sagaTrip, ok bool) error {
			if !ok {
				return errors.New("refused")
			}
			return nil
		}, nil).Retry(once))
	if err != nil {
		c.t.Fatal(err)
	}
	runner, err := saga.NewRunner(saga.Config{Poll: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}, book)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	c.t.Cleanup(func() {
		stop()
		<-ended
	})
	err = store.Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for id, answer := range map[string]any{"trip-stuck": false, "trip-waits": nil, "trip-done": true} {
			if err := book.Start(ctx, tx, id, sagaTrip{"Lisbon"}); err != nil {
				return err
			}
			if answer != nil {
				if _, err := book.Signal(ctx, tx, id, "approval", answer); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for id, want := range map[string]saga.Status{"trip-stuck": saga.Stuck, "trip-waits": saga.Waiting, "trip-done": saga.Completed} {
		awaitSaga(c, operator, id, want)
	}
	return operator
}

func awaitSaga(c *cli, store saga.Admin, id string, want saga.Status) {
	c.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		i, err := store.Show(c.t.Context(), "book-trip", id)
		if err == nil && i.Status == want {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s is not %s: %+v, %v", id, want, i, err)
		}
	}
}

func TestSagaCommands(t *testing.T) {
	t.Setenv("POSTRIDER_ACTOR", "ann@work")
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	if _, _, err := c.runSaga("ls"); exitCode(t.Context(), err) != exitSchema {
		t.Errorf("got %v", err)
	}
	store := sagaStage(c)

	c.says([]string{"NAME", "trip-stuck", "stuck", "trip-done", "approval: refused"}, "ls")
	if out := c.says(nil, "ls", "--status", "stuck,waiting"); strings.Contains(out, "trip-done") {
		t.Error(out)
	}
	c.says([]string{"no sagas match"}, "ls", "--older-than", "1h")
	var listed []saga.Instance
	if err := json.Unmarshal([]byte(c.says(nil, "ls", "--json", "--name", "book-trip", "--limit", "2")), &listed); err != nil || len(listed) != 2 {
		t.Errorf("%+v, %v", listed, err)
	}
	c.refuses("is none of running", "ls", "--status", "gone", "--older-than", "yesterday")

	picture := c.says([]string{"┌ hotel", "└ flight", "!", "bank is \uFFFD[31m down", `"city": "Lisbon"`, "postrider saga retry trip-stuck --name book-trip"},
		"show", "trip-stuck")
	t.Logf("\n%s", picture)
	c.says([]string{"✓", "…", "waits without limit"}, "show", "trip-waits")
	var shown []saga.Instance
	if err := json.Unmarshal([]byte(c.says(nil, "show", "trip-done", "--json")), &shown); err != nil || len(shown[0].Steps) != 3 {
		t.Errorf("%+v, %v", shown, err)
	}
	c.refuses("postrider saga ls", "show", "trip-none")

	c.refuses("no sagas selected", "retry")
	c.refuses("contradict", "retry", "trip-stuck", "--all")
	c.refuses("does nothing to sagas that are completed", "retry", "--all", "--status", "completed")
	c.refuses("is completed: there is nothing to do", "compensate", "trip-done", "--yes")
	c.refuses("add --yes", "compensate", "trip-waits")
	c.says([]string{"would compensate 1 saga", "trip-waits"}, "compensate", "--all", "--dry-run")
	c.says([]string{"compensate: 1 saga"}, "compensate", "trip-waits", "--yes", "--reason", "customer called")
	awaitSaga(c, store, "trip-waits", saga.Stuck)
	c.says([]string{"retry: 2 sagas"}, "retry", "--all", "--status", "stuck", "--yes", "--json=false")
	awaitSaga(c, store, "trip-stuck", saga.Stuck) // the bank is still down
	c.answer = "y\n"
	c.says([]string{"Skip the current steps", "skip: 1 saga"}, "skip", "trip-stuck", "--step", "flight")
	awaitSaga(c, store, "trip-stuck", saga.Compensated)
	c.says([]string{"↺", "»"}, "show", "trip-stuck")

	records := c.must("audit", "ls", "--wide")
	for _, want := range []string{"ann@work", "saga compensate", "customer called", "trip-waits", "saga skip"} {
		if !strings.Contains(records, want) {
			t.Errorf("%q is missing in\n%s", want, records)
		}
	}
}

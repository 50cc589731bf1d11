package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestConsumerDeadLetters has operators decide about messages that a real consumer could not handle: it is the consumer's own
// process that then handles them.
func TestConsumerDeadLetters(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		c := newCLI(t, dsn)
		c.must("migrate", "up")
		billing, err := inbox.New(c.database().Inbox(), "billing", inbox.Config{Poll: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		handled := make(chan string, 10)
		known := make(chan struct{}) // closed when the customer is known
		inbox.On(billing, "order.placed", func(ctx context.Context, _ pgx.Tx, customer string) error {
			select {
			case <-known:
			default:
				if customer == "ghost" || customer == "late" {
					return postrider.Permanent(errors.New("unknown customer"))
				}
			}
			postrider.AfterCommit(ctx, func() { handled <- customer })
			return nil
		})
		running, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- billing.Run(running) }()
		receive := func(key, customer string) postrider.ID {
			m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: key}, customer)
			if err := billing.Receive(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			return m.ID
		}
		want := func(customers ...string) {
			t.Helper()
			for _, customer := range customers {
				select {
				case got := <-handled:
					if got != customer {
						t.Errorf("handled %q, want %q", got, customer)
					}
				case <-time.After(20 * time.Second):
					t.Fatalf("%q is not handled", customer)
				}
			}
		}
		ghost := receive("1", "ghost")
		receive("1", "behind")
		receive("2", "other")
		want("other")
		if out := c.must("dead", "show", ghost.String(), "--consumer", "billing"); !strings.Contains(out, "unknown customer") {
			t.Error(out)
		}

		fixed := filepath.Join(t.TempDir(), "fixed.json")
		if err := os.WriteFile(fixed, []byte(`"ada"`), 0o600); err != nil {
			t.Fatal(err)
		}
		c.must("dead", "edit", ghost.String(), "--consumer", "billing", "--payload", fixed, "--reason", "typo", "--yes")
		want("ada", "behind")

		receive("3", "late")
		close(known)
		c.must("dead", "replay", "--all", "--consumer", "billing", "--reason", "customer created", "--yes")
		want("late")

		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if out := c.must("audit", "ls", "--consumer", "billing"); !strings.Contains(out, "typo") || !strings.Contains(out, "customer created") {
			t.Error(out)
		}
		if out := c.must("dead", "ls", "--json"); strings.TrimSpace(out) != "[]" {
			t.Error(out)
		}
	})
}

package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// waysToFail are handlers that fail in other ways than by returning an error.
func waysToFail(y *inboxYard) map[string]func(ctx context.Context, tx pgx.Tx) error {
	return map[string]func(ctx context.Context, tx pgx.Tx) error{
		"a statement failed, and nobody said so": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0") // the handler ignores the error
			return nil
		},
		"the commit is refused": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+y.marks+" (text) VALUES ('twice'), ('twice')")
			return err
		},
		"a statement takes too long": func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, "SELECT pg_sleep(10)")
			return err
		},
		"the session is lost": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
	}
}

// TestInboxCountsEveryFailure verifies that the attempt counts and the message becomes a dead
// letter, whichever way a handler fails, the first time and on retries.
func TestInboxCountsEveryFailure(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		y := newInboxYard(t, dsn, postgres.Layout{})
		y.exec("ALTER TABLE " + y.marks + " ADD UNIQUE (text) DEFERRABLE INITIALLY DEFERRED")
		store := y.pgx(t).Store
		if _, err := store.Open(t.Context(), "billing"); err != nil {
			t.Fatal(err)
		}
		for name, fail := range waysToFail(y) {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				m := postrider.Message{ID: postrider.NewID(), Type: "t"}
				_, err := store.Handle(ctx, "billing", []postrider.Message{m}, false, func(ctx context.Context, tx pgx.Tx, _ []int) error { return fail(ctx, tx) })
				if !errors.As(err, new(*inbox.FailedError)) {
					t.Fatalf("got %v, want a FailedError", err)
				}
				if err := store.Defer(ctx, "billing", m, inbox.Deferral{Status: feeds.StatusRetry, Attempts: 1}); err != nil {
					t.Fatal(err)
				}
				a, err := store.Retry(ctx, "billing",
					func(ctx context.Context, tx pgx.Tx, _ feeds.Deferred) error { return fail(ctx, tx) },
					func(d feeds.Deferred, err error) inbox.Deferral {
						return inbox.Deferral{Status: feeds.StatusDead, Attempts: d.Attempts + 1, Cause: err.Error()}
					})
				if err != nil || !a.Found || a.Failed == nil {
					t.Fatalf("%+v, %v", a, err)
				}
				var status string
				var attempts int
				row := y.pool.QueryRow(ctx, fmt.Sprintf("SELECT status, attempts FROM %s.deferred WHERE id = $1::text::uuid", y.cfg.Schema), m.ID.String())
				if err := row.Scan(&status, &attempts); err != nil || status != "dead" || attempts != 2 {
					t.Errorf("%s after %d attempts, %v", status, attempts, err)
				}
			})
		}
	})
}

// TestInboxFromSQL tests the functions for consumers in other languages.
func TestInboxFromSQL(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		y := newInboxYard(t, dsn, postgres.Layout{})
		receive := func(id postrider.ID) (fresh bool, err error) {
			err = y.pool.QueryRow(t.Context(), "SELECT "+y.cfg.Schema+".receive('billing', $1::text::uuid)", id.String()).Scan(&fresh)
			return fresh, err
		}
		id := postrider.NewID()
		for _, want := range []bool{true, false, false} {
			if fresh, err := receive(id); err != nil || fresh != want {
				t.Errorf("%v, %v, want %v", fresh, err, want)
			}
		}
		// Programs in Go use the same record.
		store := y.pgx(t).Store
		verdicts, err := store.Handle(t.Context(), "billing", []postrider.Message{{ID: id, Type: "t"}}, false, nil)
		if err != nil || verdicts[0] != inbox.Repeated {
			t.Errorf("%v, %v", verdicts, err)
		}
		if _, err := receive(postrider.ID{0: 0xff, 6: 0x70, 15: 1}); sqlState(err) != "PR007" {
			t.Errorf("a message from the future: %v", err)
		}

		// IDs of any form, alone and with their source, give the same records as in Go.
		named := func(call string, args ...any) (fresh bool) {
			t.Helper()
			if err := y.pool.QueryRow(t.Context(), "SELECT "+y.cfg.Schema+"."+call, args...).Scan(&fresh); err != nil {
				t.Fatalf("%s: %v", call, err)
			}
			return fresh
		}
		own := postrider.NewID().String()
		for _, c := range []struct {
			call string
			args []any
			want bool
		}{
			{"receive('billing', '" + own + "')", nil, true}, // a literal
			{"receive('billing', $1::uuid)", []any{own}, false},
			{"receive('billing', $1::text)", []any{strings.ToUpper(own)}, false},
			{"receive('billing', $1, 'postrider')", []any{own}, false},
			{"receive('billing', $1, '/shop')", []any{own}, true},
			{"receive('billing', 'outbox-6')", nil, true},
			{"receive('billing', 'outbox-6')", nil, false},
			{"receive('billing', 'outbox-6', '/shop')", nil, true},
			{"receive('billing', 'outbox-6', source => '/crm')", nil, true},
			{"receive('billing', 'outbox-6', '/crm')", nil, false},
		} {
			if got := named(c.call, c.args...); got != c.want {
				t.Errorf("%s %v: %v, want %v", c.call, c.args, got, c.want)
			}
		}
		verdicts, err = store.Handle(t.Context(), "billing", []postrider.Message{{ID: codec.Identity("/shop", "outbox-6"), Type: "t"}}, false, nil)
		if err != nil || verdicts[0] != inbox.Repeated {
			t.Errorf("%v, %v", verdicts, err)
		}
		if err := y.pool.QueryRow(t.Context(), "SELECT "+y.cfg.Schema+".receive('billing', '')").Scan(new(bool)); sqlState(err) != "22004" {
			t.Errorf("a message without an ID: %v", err)
		}
	})
}

// TestMessageIdentity verifies that SQL and Go compute the same ID for a message.
func TestMessageIdentity(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		y := newInboxYard(t, dsn, postgres.Layout{})
		v4 := postrider.NewID()
		v4[6] = v4[6]&0x0f | 0x40
		ids := []string{v4.String(), strings.ToUpper(v4.String()), "1001", "@0/42", "ä 世界", "x" + v4.String(), "{" + v4.String() + "}", strings.ReplaceAll(v4.String(), "-", "")}
		for range 40 {
			ids = append(ids, postrider.NewID().String(), strings.ToUpper(postrider.NewID().String()), rand.Text())
		}
		for _, source := range []string{"", "postrider", "/shop", "https://shop.example.com/ä", "12:"} {
			for _, id := range ids {
				var got string
				err := y.pool.QueryRow(t.Context(), "SELECT "+y.cfg.Schema+".message_identity($1, $2)::text", source, id).Scan(&got)
				if want := codec.Identity(source, id).String(); err != nil || got != want {
					t.Errorf("%q of %q is %s in SQL and %s in Go: %v", id, source, got, want, err)
				}
			}
		}
	})
}

// TestConsumerRole verifies that a login with the consumer role can run an inbox and nothing else.
func TestConsumerRole(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		h := newHouse(t, dsn, postgres.Layout{})
		consumer := h.as(dsn, "consumer")
		store := consumer.db.Inbox()
		ctx := t.Context()
		in, err := inbox.New(store, "billing", inbox.Config{Retry: retry.Policy{Pauses: []time.Duration{time.Microsecond}}, Poll: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		attempts := 0
		in.Handle("*", func(context.Context, pgx.Tx, postrider.Message) error {
			if attempts++; attempts == 1 {
				return errors.New("not yet")
			}
			return nil
		})
		first := postrider.Message{ID: postrider.NewID(), Type: "t", Key: "k"}
		old := postrider.Message{ID: postrider.ID{6: 0x70, 15: 1}, Type: "t"}
		ahead := postrider.Message{ID: postrider.ID{0: 0xff, 6: 0x70, 15: 1}, Type: "t"}
		for _, m := range []postrider.Message{first, first, {ID: postrider.NewID(), Type: "t", Key: "k"}, old, ahead} {
			if err := in.Receive(ctx, m); err != nil {
				t.Fatal(err)
			}
		}
		running, cancel := context.WithTimeout(ctx, 20*time.Second)
		done := make(chan error, 1)
		go func() { done <- in.Run(running) }()
		for in.Stats().Handled < 3 && running.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s, want := in.Stats(), (inbox.Stats{Handled: 3, Repeated: 1, Waiting: 1, Failed: 1, Dead: 1, Late: 1}); s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
		if err := store.Maintain(ctx); err != nil {
			t.Error(err)
		}
		consumer.exec("SELECT @.receive('shipping', gen_random_uuid()), @.receive('shipping', 'order-7', '/shop')")
		consumer.mustNotBeAllowed(
			"SELECT * FROM @.messages",
			"SELECT * FROM @.deferred",
			"INSERT INTO @.messages (type) VALUES ('t')",
			"DELETE FROM @.inbox",
			"TRUNCATE @.inbox_0",
			"DELETE FROM @.inbox_strays",
			"UPDATE @.consumers SET name = 'x'",
			"DELETE FROM @.deferred",
			"SELECT @.act('discard', '{inbox/billing}', '{1}')",
			"SELECT @.remove_feed('x', '', 'inbox/billing')",
			"SELECT * FROM @.audit",
			"SELECT @.open_feed('x')",
			"CREATE TABLE @.x ()",
		)
	})
}

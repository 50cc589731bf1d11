package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/inbox/inboxtest"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/mysql"
	"github.com/postrider/postrider/store/table/tabletest"
)

func TestInbox(t *testing.T) {
	t.Parallel()
	db := newInboxDatabase(t)
	inboxtest.Run(t, func(t testing.TB) inboxtest.Subject[*sql.Tx] {
		// As good as new, and quicker.
		mustExec(t, db, "DELETE FROM marks", "DELETE FROM postrider_inbox", "DELETE FROM postrider_inbox_deferred",
			"DELETE FROM postrider_inbox_turns", "DELETE FROM postrider_consumer_heard", "DELETE FROM postrider_consumers")
		return inboxSubject(t, db, mysql.Config{})
	})
}

func TestInboxWindow(t *testing.T) {
	t.Parallel()
	cfg := mysql.Config{}
	cfg.InboxWindow = 3500 * time.Millisecond
	inboxtest.RunWindow(t, inboxSubject(t, newInboxDatabase(t), cfg))
}

// newInboxDatabase has a table for effects.
func newInboxDatabase(t testing.TB) *sql.DB {
	db := newMariaDB(t)
	mustExec(t, db, "CREATE TABLE marks (n bigint AUTO_INCREMENT PRIMARY KEY, text longblob) ENGINE = InnoDB")
	return db
}

func inboxSubject(t testing.TB, db *sql.DB, cfg mysql.Config) inboxtest.Subject[*sql.Tx] {
	own := must(mysql.Open(db, cfg))(t)
	return inboxtest.Subject[*sql.Tx]{
		Store:       own.Inbox(),
		DeadLetters: own.Admin(),
		Gauges:      own.Admin(),
		Window:      cfg.InboxWindow,
		Do: func(ctx context.Context, f func(context.Context, *sql.Tx) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := f(ctx, tx); err != nil {
				return err
			}
			return tx.Commit()
		},
		Mark: func(ctx context.Context, tx *sql.Tx, text string) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO marks (text) VALUES (?)", []byte(text))
			return err
		},
		Marks: func(ctx context.Context) (all []string) {
			rows, err := db.QueryContext(ctx, "SELECT text FROM marks ORDER BY n")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for rows.Next() {
				var text string
				if err := rows.Scan(&text); err != nil {
					t.Fatal(err)
				}
				all = append(all, text)
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			return all
		},
	}
}

// waysToFail are those of handlers that do not simply return an error.
var waysToFail = map[string]func(ctx context.Context, tx *sql.Tx) error{
	"the transaction was ended by a definition": func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE OR REPLACE TABLE defined (n int)")
		return err
	},
	"a statement takes too long": func(ctx context.Context, tx *sql.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := tx.ExecContext(ctx, "SELECT SLEEP(0.3)")
		return err
	},
	"the session is lost": func(ctx context.Context, tx *sql.Tx) error {
		var id int64
		if err := tx.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, fmt.Sprint("KILL ", id))
		return err
	},
	"it is given up for the sake of others, always": func(context.Context, *sql.Tx) error {
		return &driver.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock"}
	},
}

// TestInboxCountsEveryFailure holds that whichever way a handler fails, the first time and when it is tried again, the attempt
// counts and the message ends as a dead letter.
func TestInboxCountsEveryFailure(t *testing.T) {
	t.Parallel()
	s := tabletest.MariaDB(t)
	tabletest.Migrate(t, s, table.Config{})
	db, _ := overWire(t, s) // whose driver says nothing about sessions that are lost
	store := must(mysql.Open(db, mysql.Config{}))(t).Inbox()
	if _, err := store.Open(t.Context(), "billing"); err != nil {
		t.Fatal(err)
	}
	for name, fail := range waysToFail {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			m := postrider.Message{ID: postrider.NewID(), Type: "t"}
			_, err := store.Handle(ctx, "billing", []postrider.Message{m}, false, func(ctx context.Context, tx *sql.Tx, _ []int) error { return fail(ctx, tx) })
			if !errors.As(err, new(*inbox.FailedError)) {
				t.Fatalf("got %v, want a FailedError", err)
			}
			if name == "the transaction was ended by a definition" {
				mustExec(t, s.DB, "DELETE FROM postrider_inbox") // what was done before has committed
			}
			if err := store.Defer(ctx, "billing", m, inbox.Deferral{Status: feeds.StatusRetry, Attempts: 1}); err != nil {
				t.Fatal(err)
			}
			a, err := store.Retry(ctx, "billing",
				func(ctx context.Context, tx *sql.Tx, _ feeds.Deferred) error { return fail(ctx, tx) },
				func(d feeds.Deferred, err error) inbox.Deferral {
					return inbox.Deferral{Status: feeds.StatusDead, Attempts: d.Attempts + 1, Cause: err.Error()}
				})
			if err != nil || !a.Found || a.Failed == nil {
				t.Fatalf("%+v, %v", a, err)
			}
			var status string
			var attempts int
			row := s.DB.QueryRowContext(ctx, "SELECT status, attempts FROM postrider_inbox_deferred WHERE message_id = ?", m.ID[:])
			if err := row.Scan(&status, &attempts); err != nil || status != "dead" || attempts != 2 {
				t.Errorf("%s after %d attempts, %v", status, attempts, err)
			}
		})
	}
}

// TestInboxForgets holds that Maintain removes what is out of the window, and the traces of what was discarded.
func TestInboxForgets(t *testing.T) {
	t.Parallel()
	db := newInboxDatabase(t)
	store := must(mysql.Open(db, mysql.Config{}))(t).Inbox()
	handle := func(m postrider.Message) {
		t.Helper()
		_, err := store.Handle(t.Context(), "billing", []postrider.Message{m}, false, func(context.Context, *sql.Tx, []int) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		handle(postrider.Message{ID: postrider.NewID(), Type: "t"})
	}
	kept := postrider.Message{ID: postrider.NewID(), Type: "t"}
	if err := store.Defer(t.Context(), "billing", kept, inbox.Deferral{Status: feeds.StatusDead}); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, "UPDATE postrider_inbox SET keep_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND", "INSERT INTO postrider_inbox_turns VALUES (4711)")
	handle(postrider.Message{ID: postrider.NewID(), Type: "t"})
	if err := store.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "SELECT count(*) FROM postrider_inbox"); n != 2 {
		t.Errorf("%d records are left, want that of what is deferred and the new one", n)
	}
	if n := count(t, db, "SELECT count(*) FROM postrider_inbox_turns"); n != 1 {
		t.Errorf("%d turns are left, want 1", n)
	}
}

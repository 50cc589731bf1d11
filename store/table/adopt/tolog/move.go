package tolog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/sleep"
)

// ErrBlocked means that rows wait behind dead letters of their keys, for an operator to decide.
var ErrBlocked = errors.New("tolog: rows wait behind dead letters of their keys")

// Script returns the statements that [Move.Begin] and [Move.Finish] run, for the table as it is.
func (m *Move) Script(ctx context.Context) (begin, finish string, err error) {
	t, err := m.inspect(ctx)
	if err != nil {
		return "", "", err
	}
	begin = strings.Join(t.install(), ";\n\n") + ";\n"
	if claim := t.claim(); claim != "" {
		begin += "\n" + claim + ";\n"
	}
	return begin, strings.Join(t.remove(), ";\n") + ";\n", nil
}

// Run does all of it up to the point where the log has taken over, and calls progress, which may be nil, after each look. Where it
// was interrupted, it goes on. It fails with [ErrBlocked] when nothing but such rows is left, and leaves the feed paused.
func (m *Move) Run(ctx context.Context, by admin.By, progress func(Status)) error {
	if err := m.Begin(ctx, by); err != nil {
		return err
	}
	return m.Drain(ctx, by, progress)
}

// Begin pauses the log's feed, and then lets rows that are written to the table go to the log. If they do already, it changes nothing. Where a
// rehearsal shows that writers would fail, it refuses with a [*admin.RefusedError] before anything is changed.
func (m *Move) Begin(ctx context.Context, by admin.By) error {
	t, err := m.inspect(ctx)
	if err != nil {
		return err
	}
	s, err := m.status(ctx, t)
	if err != nil || s.Moved() {
		return err
	}
	if !s.Installed {
		rehearsal, err := m.Rehearse(ctx)
		if err != nil {
			return err
		}
		if err := rehearsal.refuse(); err != nil {
			return err
		}
		if err := m.pause(ctx, t, by); err != nil {
			return err
		}
		if err := m.patiently(ctx, t.install()); err != nil {
			return fmt.Errorf("tolog: trigger on %s: %w", t.Table, explain(err))
		}
	}
	if claim := t.claim(); claim != "" {
		if _, err := m.pool.Exec(ctx, claim, pgx.QueryExecModeExec); err != nil {
			return fmt.Errorf("tolog: dedup keys of %s: %w", t.Table, explain(err))
		}
	}
	return nil
}

// pause leaves the log's feed paused, with no relay that has not noticed.
func (m *Move) pause(ctx context.Context, t *source, by admin.By) error {
	var created bool
	err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error { // both at once: no relay ever carries a new feed
		if err := tx.QueryRow(ctx, "SELECT "+t.log+".add_feed($1, $2, $3, false)", pgx.QueryExecModeExec, by.Who, by.Why, m.cfg.Feed).
			Scan(&created); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "SELECT "+t.log+".pause_feed($1, $2, $3, true)", pgx.QueryExecModeExec, by.Who, by.Why, m.cfg.Feed)
		return err
	})
	if err != nil {
		return fmt.Errorf("tolog: pausing the feed %s: %w", m.cfg.Feed, explain(err))
	}
	// A relay that was about to take a shard has taken it by the second look.
	for free := 0; !created && free < 2; {
		s, err := m.status(ctx, t)
		if err != nil {
			return err
		}
		if free++; s.Held > 0 {
			free = 0
		}
		if !sleep.For(ctx, time.Second) {
			return ctx.Err()
		}
	}
	return nil
}

// patiently runs statements in one transaction that waits for locks for a moment only, again and again: writers that have to wait
// behind it do so no longer than that.
func (m *Move) patiently(ctx context.Context, statements []string) error {
	for pause := m.cfg.LockTimeout; ; pause = min(2*pause, 30*time.Second) {
		err := pgx.BeginFunc(ctx, m.pool, func(tx pgx.Tx) error {
			all := append([]string{fmt.Sprintf("SET LOCAL lock_timeout = %d", m.cfg.LockTimeout.Milliseconds())}, statements...)
			for _, statement := range all {
				if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
					return err
				}
			}
			return nil
		})
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55P03" && pg.Code != "40P01" {
			return err
		}
		if !sleep.For(ctx, pause) {
			return ctx.Err()
		}
	}
}

// Drain waits until the rows that were there before are delivered, and lets the log's feed go on.
func (m *Move) Drain(ctx context.Context, by admin.By, progress func(Status)) error {
	t, err := m.inspect(ctx)
	if err != nil {
		return err
	}
	for {
		begin := time.Now()
		s, err := m.status(ctx, t)
		if err != nil {
			return err
		}
		if progress != nil {
			progress(s)
		}
		switch {
		case !s.Installed:
			return errors.New("tolog: the trigger is not there: rows do not go to the log yet")
		case s.Moved():
			return nil
		case s.Waiting == 0 || m.cfg.LeaveBlocked && s.Waiting == s.Blocked:
			return m.resume(ctx, t, by)
		case s.Waiting == s.Blocked:
			return fmt.Errorf("%w: %d rows of %s", ErrBlocked, s.Blocked, t.Table)
		}
		// The more it costs to look, the less often.
		if !sleep.For(ctx, max(50*time.Millisecond, 5*time.Since(begin))) {
			return ctx.Err()
		}
	}
}

func (m *Move) resume(ctx context.Context, t *source, by admin.By) error {
	var done bool
	err := m.pool.QueryRow(ctx, "SELECT "+t.log+".pause_feed($1, $2, $3, false)", pgx.QueryExecModeExec, by.Who, by.Why, m.cfg.Feed).Scan(&done)
	if err == nil && !done {
		err = admin.ErrNoFeed
	}
	if err != nil {
		return fmt.Errorf("tolog: resuming the feed %s: %w", m.cfg.Feed, explain(err))
	}
	return nil
}

// Finish removes the trigger, when no process has written to the table for [Config.Quiet] and nothing is left in it. A row that is
// written there later is not carried by anybody, unless relays of the table still run.
func (m *Move) Finish(ctx context.Context) error {
	t, err := m.inspect(ctx)
	if err != nil {
		return err
	}
	s, err := m.status(ctx, t)
	if err != nil {
		return err
	}
	var now time.Time
	if err := m.pool.QueryRow(ctx, "SELECT clock_timestamp()", pgx.QueryExecModeExec).Scan(&now); err != nil {
		return fmt.Errorf("tolog: %w", err)
	}
	refuse := func(remedy, format string, args ...any) error {
		return &admin.RefusedError{Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	switch ago := now.Sub(s.LastInsert); {
	case !s.Installed:
		return nil
	case s.Paused:
		return refuse("let the move come to its end first", "the feed %s is still paused", s.Feed)
	case s.Waiting > 0 || s.Scheduled > 0:
		return refuse("its relays deliver them; keep them running", "%d rows of %s are not delivered yet", s.Waiting+s.Scheduled, s.Table)
	case !s.LastInsert.IsZero() && ago < m.cfg.Quiet:
		return refuse("switch that process to the log first", "a process has written to %s %v ago", s.Table, ago.Round(time.Second))
	}
	if err := m.patiently(ctx, t.remove()); err != nil {
		return fmt.Errorf("tolog: removing the trigger on %s: %w", t.Table, explain(err))
	}
	return nil
}

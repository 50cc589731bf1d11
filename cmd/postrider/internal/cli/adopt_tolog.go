package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/adopt/tolog"
)

// toLog holds the flags of "postrider adopt" for the move to the log.
type toLog struct {
	change
	wanted, status, finish bool
	feed, schema           string
	lockTimeout, quiet     time.Duration
	leaveBlocked           bool
}

// toLogHelp is the part of the help of "postrider adopt" about these flags.
const toLogHelp = "With --to-log an application moves from the table to the log, on PostgreSQL, while everything runs. A trigger copies what is\n" +
	"written to the table into the log. The log's feed is paused until the table's relays have delivered what was there before,\n" +
	"so that keys keep their order. Then processes can be changed to write to the log, one after the other. When none writes to\n" +
	"the table any more, --to-log --finish removes the trigger. --to-log --status says how far it is; its --json has: table, feed,\n" +
	"installed, exists, paused, held, relays, waiting, blocked, scheduled, last_insert."

func (a *app) addToLog(cmd *cobra.Command) *toLog {
	f := &toLog{}
	flags := cmd.Flags()
	flags.BoolVar(&f.wanted, "to-log", false, "copy new messages of the table to the log (PostgreSQL)")
	flags.BoolVar(&f.status, "status", false, "with --to-log: only print the progress")
	flags.BoolVar(&f.finish, "finish", false, "with --to-log: remove the trigger, when no process writes to the table any more")
	flags.StringVar(&f.feed, "feed", "default", "with --to-log: feed of the log that takes over")
	flags.StringVar(&f.schema, "log-schema", "postrider", "with --to-log: schema that holds the log")
	flags.DurationVar(&f.lockTimeout, "lock-timeout", 2*time.Second, "with --to-log: maximum time that writers of the table wait for a lock")
	flags.DurationVar(&f.quiet, "quiet", time.Hour, "with --finish: how long the table must have been without writes")
	flags.BoolVar(&f.leaveBlocked, "leave-blocked", false, "with --to-log: do not wait for rows behind a dead letter; they lose their order")
	f.addFlags(cmd)
	return f
}

func (f *toLog) asked() bool { return f.wanted || f.status || f.finish }

// adoptToLog runs the step of the move that the flags select.
func (a *app) adoptToLog(ctx context.Context, f *toLog, tableName, preset string) error {
	if !f.wanted {
		return usagef("--status and --finish go with --to-log")
	}
	if f.status && f.finish {
		return usagef("--status and --finish contradict each other")
	}
	cfg, err := a.adopted(ctx, tableName, preset)
	if err != nil {
		return err
	}
	if cfg.Dialect != table.PostgreSQL {
		return usagef("--to-log needs PostgreSQL: the log is in the same database as the table")
	}
	pg, err := a.db.pgConfig()
	if err != nil {
		return err
	}
	pool, err := a.db.openWith(ctx, pg)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := tolog.New(pool, tolog.Config{
		Classic: cfg, Log: postgres.Config{Schema: f.schema}, Feed: f.feed, LockTimeout: f.lockTimeout, LeaveBlocked: f.leaveBlocked, Quiet: f.quiet,
	})
	if err != nil {
		return usageError{err}
	}
	now, err := m.Status(ctx)
	if err != nil {
		return err
	}
	switch {
	case f.status:
		return a.reportMove(now)
	case f.dryRun:
		return a.rehearse(ctx, m, f, now)
	case f.finish:
		return a.finishMove(ctx, m, f, now)
	}
	return a.runMove(ctx, m, f, now)
}

// adopted returns the configuration of the table: from the file if it names one, otherwise as
// proposed.
func (a *app) adopted(ctx context.Context, tableName, preset string) (table.Config, error) {
	if a.db.name != "" {
		cfg, err := a.db.classicStore()
		if err == nil && cfg.Layout.Table != tableName && (cfg.Layout.Table != "" || tableName != table.Native("postrider_").Table) {
			err = usagef("the table of databases.%s is %q, and not %q", a.db.name, cfg.Layout.Table, tableName)
		}
		return cfg, err
	}
	found, err := a.proposal(ctx, tableName, preset)
	if err != nil {
		return table.Config{}, err
	}
	cfg, err := a.db.classicStore()
	cfg.Layout = found.Layout
	return cfg, err
}

// rehearse prints what the move would do, and tries it in a transaction that it rolls back.
func (a *app) rehearse(ctx context.Context, m *tolog.Move, f *toLog, now tolog.Status) error {
	begin, finish, err := m.Script(ctx)
	if err != nil {
		return err
	}
	if f.finish {
		_, err = fmt.Fprint(a.out, finish)
		return err
	}
	if a.asJSON {
		return a.reportMove(now)
	}
	rehearsal, err := m.Rehearse(ctx)
	if err != nil {
		return err
	}
	a.notef("rehearsed with the newest %s: %d would stay in the table, the writers of %d would fail",
		phrase.Quantity(rehearsal.Rows, "row", "rows"), rehearsal.Stay, rehearsal.Fail)
	if rehearsal.Why != "" {
		a.notef("such as row %s: %s", cell(rehearsal.Row, true), cell(rehearsal.Why, true))
	}
	a.notef("would pause the feed %s of the log, run this in one transaction, wait for %s of the table to be delivered, and let the feed go on",
		cell(now.Feed, true), phrase.Quantity(now.Waiting, "row", "rows"))
	if now.Exists && !now.Paused {
		a.notef("the feed %s exists: what it carries besides is late for as long", cell(now.Feed, true))
	}
	_, err = fmt.Fprint(a.out, begin)
	return err
}

func (a *app) runMove(ctx context.Context, m *tolog.Move, f *toLog, now tolog.Status) error {
	if now.Moved() {
		return a.reportMove(now)
	}
	if now.Relays == 0 && now.Waiting > 0 {
		return hintedError{fmt.Errorf("no relay serves the table, and %s: they would never be delivered", waiting(now.Waiting)),
			"start one, with the configuration that has the table: postrider relay"}
	}
	question := fmt.Sprintf("Let messages of table %s go to the log, and pause feed %s until %s been delivered?",
		cell(now.Table, true), cell(now.Feed, true), phrase.Quantity(now.Waiting, "row has", "rows have"))
	if err := a.confirm(f.danger, question); err != nil {
		return err
	}
	begin := time.Now()
	err := m.Run(ctx, f.by(), func(s tolog.Status) {
		a.progress(fmt.Sprintf("%s of the table to be delivered", phrase.Quantity(s.Waiting, "row", "rows")))
	})
	a.progress("")
	if errors.Is(err, tolog.ErrBlocked) {
		return hintedError{err, "decide about the dead letters (postrider dead ls, dead retry, keys skip), and run this again; or add --leave-blocked"}
	}
	if err != nil {
		return a.hintAdmin(err)
	}
	if now, err = m.Status(ctx); err != nil {
		return err
	}
	if !a.asJSON {
		a.notef("the log has taken over after %v; now change processes to write to it", time.Since(begin).Round(10*time.Millisecond))
	}
	return a.reportMove(now)
}

func waiting(n int) string {
	if n == 1 {
		return "1 row waits"
	}
	return strconv.Itoa(n) + " rows wait"
}

func (a *app) finishMove(ctx context.Context, m *tolog.Move, f *toLog, now tolog.Status) error {
	if !now.Installed {
		a.notef("there is no trigger on table %s", cell(now.Table, true))
		return a.reportMove(now)
	}
	if err := a.confirm(f.danger, "Remove the trigger? What is written to table "+cell(now.Table, true)+" then no longer goes to the log."); err != nil {
		return err
	}
	if err := m.Finish(ctx); err != nil {
		return a.hintAdmin(err)
	}
	now, err := m.Status(ctx)
	if err != nil {
		return err
	}
	return a.reportMove(now)
}

func (a *app) reportMove(s tolog.Status) error {
	if a.asJSON {
		return a.json(s)
	}
	target, feed := "the table", "missing"
	if s.Installed {
		target = "the log"
	}
	switch {
	case s.Paused:
		feed = "paused"
	case s.Exists:
		feed = "goes on"
	}
	return a.table([][]string{
		{"new rows of " + cell(s.Table, true) + " go to", target},
		{"feed " + cell(s.Feed, true) + " of the log", feed},
		{"relays of the table", strconv.Itoa(s.Relays)},
		{"rows to be delivered", strconv.Itoa(s.Waiting)},
		{"of these behind a dead letter", strconv.Itoa(s.Blocked)},
		{"rows whose time has not come", strconv.Itoa(s.Scheduled)},
		{"last written to, since the trigger", ago(s.LastInsert, time.Now())},
	})
}

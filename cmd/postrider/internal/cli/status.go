package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// overall is the output of "status" for one database.
type overall struct {
	Database  string           `json:"database,omitempty"` // in the configuration file
	Schema    string           `json:"schema"`
	Healthy   bool             `json:"healthy"`
	Problems  []problem        `json:"problems"` // that do not belong to one feed
	Feeds     []feedStatus     `json:"feeds"`
	Consumers []consumerStatus `json:"consumers"`
}

type feedStatus struct {
	admin.Feed
	Healthy  bool      `json:"healthy"`
	Problems []problem `json:"problems"`
}

// problem is something that needs attention.
type problem struct {
	Kind string `json:"kind"` // unreachable, foreign, no_feed, paused, no_relay, destination, stalled, late, dead, blocked
	Text string `json:"text"`
	Next string `json:"next"` // what to type
	*outage
}

// outage is a problem with a destination, as a relay has reported it.
type outage struct {
	Name     string    `json:"name"` // of a queue, topic, subject or endpoint; empty for the destination as a whole
	Cause    string    `json:"cause"`
	Since    time.Time `json:"since"`
	Failures int64     `json:"failures"`
}

func (a *app) statusCommand() *cobra.Command {
	var limits limits
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Report problems, and the next command for each",
		Long: "Shows each feed and consumer, what is late, dead or blocked, and for each problem the next command. With --all it does so\n" +
			"for every database of the configuration file, even if some cannot be reached.\n\n" +
			"Exit codes: 0 no problems, 1 something needs attention, 2 wrong usage, 5 the schema is missing or has another\n" +
			"version, 6 the database cannot be reached.\n\n" +
			"--json prints an object, with --all an array of objects with: database, schema, healthy, problems, feeds, consumers; feeds have the fields of \"feeds ls\", and\n" +
			"healthy and problems; consumers have name, heard, process, deferred, dead, parked, blocked, healthy and problems; problems have kind (unreachable, foreign, no_feed, paused, no_relay, no_consumer, destination, stalled, late, dead, blocked), text and\n" +
			"next; those of kind destination also name, cause, since and failures.",
		Example: "  postrider status\n" +
			"  postrider status --all\n" +
			"  postrider status --late 10s --json | jq -r '.feeds[].problems[].next'",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all {
				return a.statusOfAll(cmd.Context(), cmd.Flags().Changed, limits)
			}
			h, err := a.status(cmd.Context(), limits)
			if err != nil {
				return err
			}
			if a.asJSON {
				err = a.json(h)
			} else {
				err = a.reportHealth(h)
			}
			return cmp.Or(err, attention(h))
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "of every database of the configuration file ($POSTRIDER_CONFIG, ./"+defaultConfig+")")
	cmd.Flags().DurationVar(&limits.late, "late", time.Minute, "age from which a waiting message is late")
	cmd.Flags().DurationVar(&limits.canary, "canary", 12*time.Second, "time without a canary from which a feed is stalled")
	return cmd
}

// limits are the thresholds of problems.
type limits struct{ late, canary time.Duration }

// statusOfAll reports on every database of the file. It reports a database that it cannot reach as
// a problem, and continues.
func (a *app) statusOfAll(ctx context.Context, said func(flag string) bool, limits limits) error {
	for _, flag := range []string{"database", "dsn", "schema", "engine", "home"} {
		if said(flag) {
			return usagef("--all and --%s contradict each other: want all databases of the file, or one", flag)
		}
	}
	path, _ := configPath("")
	f, err := a.useConfig(path, false)
	if err != nil {
		return err
	}
	all := []overall{}
	for _, name := range slices.Sorted(maps.Keys(f.Databases)) {
		a.db = *fileDatabase(name, f.Databases[name])
		h, err := a.status(ctx, limits)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			h = overall{Schema: a.db.schemaName(), Feeds: []feedStatus{}, Consumers: []consumerStatus{}, Problems: []problem{{
				Kind: "unreachable", Text: a.scrub(err.Error()), Next: a.hint(err, exitCode(ctx, err)),
			}}}
		}
		h.Database = name
		all = append(all, h)
		if !a.asJSON {
			if err := a.reportHealth(h); err != nil {
				return err
			}
			a.gap()
		}
	}
	if a.asJSON {
		if err := a.json(all); err != nil {
			return err
		}
	}
	return attention(all...)
}

// attention returns the error of the command if there are problems.
func attention(all ...overall) error {
	n := 0
	for _, h := range all {
		n += len(h.Problems)
		for _, f := range h.Feeds {
			n += len(f.Problems)
		}
		for _, c := range h.Consumers {
			n += len(c.Problems)
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s attention", phrase.Quantity(n, "thing needs", "things need"))
}

// status examines the database of the flags.
func (a *app) status(ctx context.Context, limits limits) (h overall, err error) {
	err = a.withAdmin(ctx, func(pool *pgxpool.Pool, d operator) error {
		h, err = a.health(ctx, pool, d, limits)
		return err
	})
	return h, err
}

func (a *app) health(ctx context.Context, pool *pgxpool.Pool, d operator, limits limits) (h overall, err error) {
	h = overall{Schema: a.db.schemaName(), Problems: []problem{}, Feeds: []feedStatus{}}
	var foreign bool
	if pool != nil { // nil with the classic engine
		db, err := a.db.log(pool)
		if err != nil {
			return h, err
		}
		if foreign, err = db.Foreign(ctx); err != nil {
			return h, a.db.explain(err)
		}
	}
	listed, err := d.ListFeeds(ctx)
	if err != nil {
		return h, err
	}
	if foreign {
		h.Problems = append(h.Problems, problem{
			Kind: "foreign", Text: "the ledger was written in another database, or has another home: relays pause", Next: a.next("rebase --dry-run"),
		})
	}
	if len(listed) == 0 {
		h.Problems = append(h.Problems, problem{Kind: "no_feed", Text: "there is no feed: nothing is delivered", Next: a.next("relay --to ADDRESS")})
	}
	for _, f := range listed {
		outages, err := d.Problems(ctx, f.Name)
		if err != nil {
			return h, err
		}
		problems := append(a.problemsOf(f, limits, time.Now()), a.outagesOf(f.Name, outages, time.Now())...)
		h.Feeds = append(h.Feeds, feedStatus{f, len(problems) == 0, problems})
	}
	if h.Consumers, err = a.consumers(ctx, d); err != nil {
		return h, err
	}
	h.Healthy = attention(h) == nil
	return h, nil
}

// problemsOf returns the problems of a feed.
func (a *app) problemsOf(f admin.Feed, limits limits, now time.Time) []problem {
	all := []problem{}
	add := func(kind, text, command string) {
		all = append(all, problem{Kind: kind, Text: text, Next: a.next(command, f.Name)})
	}
	if f.Paused {
		add("paused", "it is paused", "feeds resume")
	}
	if f.Members == 0 {
		add("no_relay", "no relay serves it", "relay --to ADDRESS --feed")
	}
	if wait := now.Sub(f.Canary); !f.Canary.IsZero() && !f.Paused && wait > limits.canary {
		all = append(all, problem{
			Kind: "stalled", Text: fmt.Sprintf("it is stalled, or that far behind: no canary has arrived for %s", phrase.Age(wait)),
			Next: a.next("doctor"),
		})
	}
	if wait := now.Sub(f.Oldest); !f.Oldest.IsZero() && wait > limits.late {
		add("late", fmt.Sprintf("%s to deliver, the oldest for %s", phrase.Quantity(f.Pending, "message", "messages"), phrase.Age(wait)),
			"messages ls --status pending --feed")
	}
	if f.Dead > 0 {
		add("dead", phrase.Quantity(f.Dead, "dead letter", "dead letters"), "dead ls --feed")
	}
	if f.Blocked > 0 {
		add("blocked", phrase.Quantity(f.Blocked, "key is blocked", "keys are blocked"), "keys blocked --feed")
	}
	return all
}

// maxOutages is the maximum number of names that are shown per feed.
const maxOutages = 10

// shortened truncates an error to a line or two.
func shortened(cause string) string {
	if runes := []rune(cause); len(runes) > 200 {
		return string(runes[:199]) + "…"
	}
	return cause
}

// outagesOf returns the current problems of a feed's destination, as relays have reported them.
func (a *app) outagesOf(feed string, reported []feeds.Problem, now time.Time) []problem {
	reported = slices.DeleteFunc(reported, func(p feeds.Problem) bool { return !p.Over.IsZero() })
	var all []problem
	for i, p := range reported {
		if i == maxOutages {
			all = append(all, problem{
				Kind: "destination", Text: fmt.Sprintf("%s more", phrase.Quantity(len(reported)-i, "name", "names")),
				Next: a.next("messages ls --status held --feed", feed),
			})
			break
		}
		what, next := "the destination", a.next("doctor")
		if p.Name != "" {
			what, next = fmt.Sprintf("%q", p.Name), a.next("messages ls --status held --feed", feed)
		}
		all = append(all, problem{
			Kind: "destination",
			Text: fmt.Sprintf("%s has accepted nothing for %s (%s): %s", what, phrase.Age(now.Sub(p.Since)),
				phrase.Quantity(int(p.Failures), "failure", "failures"), shortened(p.Cause)),
			Next:   next,
			outage: &outage{p.Name, p.Cause, p.Since, p.Failures},
		})
	}
	return all
}

// reportHealth prints the report as text.
func (a *app) reportHealth(h overall) error {
	names := make([]admin.Feed, len(h.Feeds))
	rows := [][]string{}
	for _, p := range h.Problems {
		rows = append(rows, []string{"-", cell(p.Text, true), p.Next})
	}
	for i, f := range h.Feeds {
		names[i] = f.Feed
		for _, p := range f.Problems {
			rows = append(rows, []string{cell(f.Name, false), cell(p.Text, true), p.Next})
		}
	}
	summary := a.paint(green, "healthy")
	if !h.Healthy {
		summary = a.paint(red, "needs attention")
	}
	where := a.db.described()
	if h.Database != "" {
		where = "database " + h.Database + ", " + where
	}
	if _, err := fmt.Fprintf(a.out, "%s: %s\n", where, summary); err != nil {
		return err
	}
	if len(names) > 0 {
		a.gap()
		if err := a.listFeeds(names, false); err != nil {
			return err
		}
	}
	if len(h.Consumers) > 0 {
		a.gap()
		if err := a.listConsumers(h.Consumers); err != nil {
			return err
		}
	}
	for _, c := range h.Consumers {
		for _, p := range c.Problems {
			rows = append(rows, []string{cell(inbox.Feed(c.Name), false), p.Text, p.Next})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	a.gap()
	return a.listing([]string{"FEED", "PROBLEM", "NEXT"}, rows, "PROBLEM", func(string) int { return yellow })
}

// gap prints an empty line. It ignores errors, because the next line fails too.
func (a *app) gap() { _, _ = fmt.Fprintln(a.out) }

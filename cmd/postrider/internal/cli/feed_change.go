package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// feedChange is the result of a change to a feed, or of its dry run.
type feedChange struct {
	Feed   string   `json:"feed"`
	Action string   `json:"action"`
	Done   bool     `json:"done"`
	Count  int      `json:"count"`            // affected messages
	More   bool     `json:"more,omitempty"`   // counting stopped at a limit
	Sample []listed `json:"sample,omitempty"` // of the affected messages
}

// reportFeed prints the result as JSON, or the text.
func (a *app) reportFeed(r feedChange, text string) error {
	if a.asJSON {
		return a.json(r)
	}
	if _, err := fmt.Fprintln(a.out, text); err != nil {
		return err
	}
	return a.list(r.Sample, false)
}

func (a *app) feedsPauseCommand(paused bool) *cobra.Command {
	var c change
	name, short, state := "resume", "Resume a paused feed", "goes on"
	if paused {
		name, short, state = "pause", "Pause a feed: relays finish what is in flight, and deliver nothing more", "is paused"
	}
	cmd := &cobra.Command{
		Use:     name + " FEED",
		Short:   short,
		Long:    short + ". Relays notice it within seconds.\n\n--json prints an object with: feed, action, done, count.",
		Example: "  postrider feeds " + name + " orders --reason 'broker maintenance'",
		Args:    named("feed"),
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			if err := d.PauseFeed(ctx, c.by(), args[0], paused); err != nil {
				return err
			}
			return a.reportFeed(feedChange{Feed: args[0], Action: name, Done: true}, "feed "+cell(args[0], true)+" "+state)
		}),
	}
	c.addReason(cmd)
	return cmd
}

func (a *app) feedsAddCommand() *cobra.Command {
	var c change
	var oldest bool
	cmd := &cobra.Command{
		Use:   "add FEED",
		Short: "Create a feed",
		Long: "Creates a feed that begins with the messages that are enqueued from now on or, with --oldest, with the oldest message that\n" +
			"the store still holds. A relay creates a feed too, if it is the first of the log or with --create.\n\n" +
			"--json prints an object with: feed, action, done, count.",
		Example: "  postrider feeds add audit --oldest",
		Args:    named("feed"),
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			if err := refuseConsumer(args[0]); err != nil {
				return err
			}
			if err := d.AddFeed(ctx, c.by(), args[0], oldest); err != nil {
				return err
			}
			return a.reportFeed(feedChange{Feed: args[0], Action: "add", Done: true}, "feed "+cell(args[0], true)+" was created")
		}),
	}
	cmd.Flags().BoolVar(&oldest, "oldest", false, "begin with the oldest message that the store still holds")
	c.addReason(cmd)
	return cmd
}

func (a *app) feedsRemoveCommand() *cobra.Command {
	var c change
	cmd := &cobra.Command{
		Use:   "rm FEED",
		Short: "Remove a feed and its deferred messages",
		Long: "Removes a feed with its position in the log and its dead letters. It is refused while relays serve the feed.\n\n" +
			"--json prints an object with: feed, action, done, count (messages that the feed will not deliver).",
		Example: "  postrider feeds rm audit --dry-run\n" +
			"  postrider feeds rm audit --reason 'nobody reads it' --yes",
		Args: named("feed"),
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			f, err := a.feedNamed(ctx, d, args[0])
			if err != nil {
				return err
			}
			deferred := f.Deferred + f.Dead + f.Parked
			plan := feedChange{Feed: f.Name, Action: "rm", Count: f.Pending + deferred}
			what := fmt.Sprintf("feed %s, with %s to deliver and %d deferred", cell(f.Name, true), phrase.Quantity(f.Pending, "message", "messages"), deferred)
			if c.dryRun {
				return a.reportFeed(plan, "would remove "+what)
			}
			if err := a.confirm(c.danger, "Remove "+what+"?"); err != nil {
				return err
			}
			if err := d.RemoveFeed(ctx, c.by(), f.Name); err != nil {
				return err
			}
			plan.Done = true
			return a.reportFeed(plan, "removed "+what)
		}),
	}
	c.addFlags(cmd)
	return cmd
}

func (a *app) feedNamed(ctx context.Context, d operator, name string) (admin.Feed, error) {
	all, err := d.ListFeeds(ctx)
	if err != nil {
		return admin.Feed{}, err
	}
	for _, f := range all {
		if f.Name == name {
			return f, nil
		}
	}
	return admin.Feed{}, wordedError{admin.ErrNoFeed, "there is no feed " + phrase.ShellWord(name)}
}

func (a *app) feedsRewindCommand() *cobra.Command {
	var c change
	var to, message string
	cmd := &cobra.Command{
		Use:   "rewind FEED {--to TIME | --message ID}",
		Short: "Move a feed back to an earlier position in the log",
		Long: "Makes a feed deliver again from the first message that was enqueued at or after a time, or from a given message.\n" +
			"Undelivered messages are still delivered. Consumers see the same IDs again.\n\n" +
			"--json prints an object with: feed, action, done, count (messages sent again), more, sample.",
		Example: "  postrider feeds rewind audit --to 2h --dry-run\n" +
			"  postrider feeds rewind audit --to 2026-01-31T12:00:00Z --reason 'index lost' --yes",
		Args: named("feed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (to == "") == (message == "") {
				return usagef("where to? Add either --to or --message")
			}
			var point admin.Point
			var err error
			if point.Time, err = parseTime(to, time.Now()); err != nil {
				return usagef("--to: %w", err)
			}
			if message != "" {
				if point.ID, err = postrider.ParseID(message); err != nil {
					return usagef("--message: %q is not the ID of a message", message)
				}
			}
			return a.onAdmin(func(ctx context.Context, d operator, args []string) error {
				return a.rewind(ctx, d, c, args[0], point)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "an RFC 3339 time, or a duration such as 2h for two hours ago")
	cmd.Flags().StringVar(&message, "message", "", "ID of the first message to send again")
	c.addFlags(cmd)
	return cmd
}

func (a *app) rewind(ctx context.Context, d operator, c change, feed string, to admin.Point) error {
	feed, err := a.theFeed(ctx, d, feed)
	if err != nil {
		return err
	}
	filter := admin.Filter{Feed: feed, Since: to.Time, Statuses: []feeds.Status{feeds.StatusPublished}}
	if !to.ID.IsZero() {
		first, err := find(ctx, d, feed, to.ID)
		if err == nil && first == nil {
			err = hintedError{errors.New("the log does not hold message " + to.ID.String()), "for the list: " + a.next("messages ls --feed", feed)}
		}
		if err != nil {
			return err
		}
		filter.Since = first.EnqueuedAt
	}
	again, more, err := readLog(ctx, d, filter, countedAtMost)
	if err != nil {
		return err
	}
	plan := feedChange{Feed: feed, Action: "rewind", Count: len(again), More: more, Sample: again[:min(sampleSize, len(again))]}
	what := "about " + atLeast(plan.Count, more)
	if c.dryRun {
		return a.reportFeed(plan, "would send "+what+" again")
	}
	if !c.yes {
		a.showSample(plan.Count, plan.Sample)
	}
	if err := a.confirm(c.danger, "Have feed "+phrase.ShellWord(feed)+" send "+what+" again?"); err != nil {
		return err
	}
	if plan.Count, err = d.Rewind(ctx, c.by(), feed, to); err != nil {
		return err
	}
	plan.Done, plan.More, plan.Sample = true, false, nil
	return a.reportFeed(plan, "feed "+cell(feed, true)+" will send "+phrase.Quantity(plan.Count, "message", "messages")+" again")
}

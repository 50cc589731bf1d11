package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
)

func (a *app) feedsCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "feeds",
		Short: "List, pause, rewind, add and remove feeds",
		Long:  "A feed is a named reader of the log with its own position. Relays serve feeds; a feed keeps its position without them.",
		Example: "  postrider feeds ls\n" +
			"  postrider feeds pause orders --reason 'broker maintenance'",
	})
	cmd.AddCommand(a.feedsListCommand(), a.feedsPauseCommand(true), a.feedsPauseCommand(false), a.feedsRewindCommand(),
		a.feedsShardsCommand(), a.feedsAddCommand(), a.feedsRemoveCommand())
	return cmd
}

func (a *app) feedsListCommand() *cobra.Command {
	var wide bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List feeds and their backlog",
		Long: "Lists all feeds by name.\n\n" +
			"--json prints an array of objects with: name, created, paused, shards, shards_to (while that changes), members, pending, oldest,\n" +
			"settled, deferred, dead, parked, blocked, next_retry.",
		Example: "  postrider feeds ls --json | jq '.[] | select(.pending > 1000) | .name'",
		Args:    noArguments,
		RunE: a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
			feeds, err := d.ListFeeds(ctx)
			if err != nil {
				return err
			}
			if a.asJSON {
				return a.json(append([]admin.Feed{}, feeds...))
			}
			if len(feeds) == 0 {
				a.notef("there are no feeds; to create one: %s", a.next("feeds add NAME"))
			}
			return a.listFeeds(feeds, wide)
		}),
	}
	addWide(cmd, &wide)
	return cmd
}

func (a *app) listFeeds(feeds []admin.Feed, wide bool) error {
	now := time.Now()
	rows := make([][]string, len(feeds))
	for i, f := range feeds {
		state := "active"
		switch {
		case f.Paused:
			state = "paused"
		case f.Members == 0:
			state = "no relay"
		case f.ShardsTo > 0:
			state = fmt.Sprintf("to %d shards", f.ShardsTo)
		}
		due := "-"
		if !f.NextRetry.IsZero() {
			due = phrase.Age(max(0, f.NextRetry.Sub(now)))
		}
		rows[i] = []string{
			a.cell(f.Name, wide), state, strconv.Itoa(f.Members), strconv.Itoa(f.Pending), ago(f.Oldest, now), strconv.Itoa(f.Deferred),
			strconv.Itoa(f.Dead), strconv.Itoa(f.Parked), strconv.Itoa(f.Blocked), due, ago(f.Settled, now),
		}
	}
	titles := []string{"FEED", "STATE", "RELAYS", "PENDING", "OLDEST", "DEFERRED", "DEAD", "PARKED", "BLOCKED", "RETRY IN", "SETTLED"}
	return a.listing(titles, rows, "STATE", func(state string) int {
		if state == "active" {
			return green
		}
		return yellow
	})
}

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
)

// shardsInterval is the time between two checks of a change of shards.
const shardsInterval = 100 * time.Millisecond

func (a *app) feedsShardsCommand() *cobra.Command {
	var c change
	var to int
	cmd := &cobra.Command{
		Use:   "shards FEED --to NUMBER",
		Short: "Change the number of shards of a feed, while relays serve it",
		Long: "A shard is a part of a feed's keys that one relay serves at a time, so the number of shards is the maximum number of relays that\n" +
			"share a feed. Relays first bring all shards to the same position in the log; keys wait meanwhile, usually for less than a second.\n" +
			"Order is kept. If you interrupt the command, the change continues: relays complete it, and the same command waits for it again.\n\n" +
			"--json prints an object with: feed, action, done, count (shards).",
		Example: "  postrider feeds shards orders --to 32 --reason 'four more relays'",
		Args:    named("feed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to < 1 || to > 1024 {
				return usagef("--to: want a number of shards, 1 to 1024")
			}
			return a.onAdmin(func(ctx context.Context, d operator, args []string) error {
				return a.changeShards(ctx, d, c, args[0], to)
			})(cmd, args)
		},
	}
	cmd.Flags().IntVar(&to, "to", 0, "number of shards, 1 to 1024")
	c.addReason(cmd)
	return cmd
}

func (a *app) changeShards(ctx context.Context, d operator, c change, feed string, to int) error {
	sharder, ok := d.(admin.Sharder)
	if !ok {
		return &admin.RefusedError{Reason: "the shards of this table are fixed", Remedy: "set shards in the configuration, and restart all its relays at once"}
	}
	began, said := time.Now(), time.Now()
	for {
		done, err := sharder.ChangeShards(ctx, c.by(), feed, to)
		if err != nil {
			return err
		}
		if done {
			return a.reportFeed(feedChange{Feed: feed, Action: "shards", Done: true, Count: to},
				fmt.Sprintf("feed %s has %d shards", cell(feed, true), to))
		}
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			a.notef("%s: relays are bringing all shards to the same position; for their progress: %s",
				time.Since(began).Round(time.Second), a.next("feeds ls"))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(shardsInterval):
		}
	}
}

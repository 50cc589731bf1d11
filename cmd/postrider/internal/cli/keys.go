package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
)

// blockedKey is a key whose messages wait behind a failed one.
type blockedKey struct {
	admin.BlockedKey
	Head listed `json:"head"` // the message that they wait for
}

func (a *app) keysCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "keys",
		Short: "List blocked keys and unblock them",
		Long: "Messages of one key are delivered in order: a failed message holds back those behind it. These commands show what\n" +
			"is held back and by what, and resolve the first message of the key.",
		Example: "  postrider keys blocked\n" +
			"  postrider keys retry order/42 --reason 'customer created'",
	})
	cmd.AddCommand(a.keysBlockedCommand(),
		a.keysActCommand(admin.Retry, "Send the message that blocks a key now, with a full set of attempts"),
		a.keysActCommand(admin.Skip, "Let later messages overtake the blocking one, which stays a dead letter"),
		a.keysActCommand(admin.Park, "Park the blocking message; later ones continue"))
	return cmd
}

func (a *app) keysBlockedCommand() *cobra.Command {
	var feed string
	var limit int
	var wide bool
	cmd := &cobra.Command{
		Use:   "blocked",
		Short: "List blocked keys, longest blocked first",
		Long: "Lists keys whose messages wait, and the message that they wait for.\n\n" +
			"--json prints an array of objects with: feed, key, since, waiting, head; head has the fields of \"dead ls\".",
		Example: "  postrider keys blocked --feed orders\n" +
			"  postrider keys blocked --consumer billing",
		Args: noArguments,
		RunE: a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
			if limit <= 0 {
				return usagef("--limit is %d: want at least 1", limit)
			}
			found, err := d.Blocked(ctx, feed, limit)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				if err := a.checkWhose(ctx, d, feed); err != nil {
					return err
				}
				a.notef("no key is blocked")
			}
			return a.listKeys(found, wide)
		}),
	}
	addWhose(cmd, &feed, "only ")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	addWide(cmd, &wide)
	return cmd
}

func (a *app) listKeys(found []admin.BlockedKey, wide bool) error {
	all := make([]blockedKey, len(found))
	rows := make([][]string, len(found))
	now := time.Now()
	for i := range found {
		k := blockedKey{found[i], listDeferred(&found[i].Head)}
		all[i] = k
		rows[i] = []string{
			a.cell(k.Feed, wide), a.cell(k.Key, wide), ago(k.Since, now), strconv.Itoa(k.Waiting), k.Head.ID.String(), string(k.Head.Status),
			strconv.Itoa(k.Head.Attempts), a.cell(k.Head.Error, wide),
		}
	}
	if a.asJSON {
		return a.json(all)
	}
	titles := []string{"FEED", "KEY", "BLOCKED", "WAITING", "BY", "STATUS", "ATTEMPTS", "ERROR"}
	return a.listing(titles, rows, "STATUS", statusColour)
}

func (a *app) keysActCommand(act admin.Act, short string) *cobra.Command {
	var feed, words string
	var c change
	var all bool
	name := string(act)
	cmd := &cobra.Command{
		Use:   name + " {KEY... | --all}",
		Short: short,
		Long: short + ".\nWorks on the first message of each key; those that wait behind it follow by themselves.\n\n" +
			"--json prints an object with: action, done, count, sample.",
		Example: "  postrider keys " + name + " order/42 --dry-run\n" +
			"  postrider keys " + name + " --all --feed orders --error 'unknown customer' --yes",
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			head := admin.Filter{Feed: feed, Error: words, Head: true, Statuses: act.From()}
			switch {
			case all == (len(args) > 0):
				return usagef("no keys selected: add their names, or --all for all that are blocked")
			case all:
				return a.act(ctx, d, c, act, []admin.Filter{head})
			}
			filters := make([]admin.Filter, len(args))
			for i, key := range args {
				if key == "" {
					return usagef("a key is empty")
				}
				filters[i] = head
				filters[i].Key = key
			}
			return a.act(ctx, d, c, act, filters)
		}),
	}
	addWhose(cmd, &feed, "only ")
	cmd.Flags().StringVar(&words, "error", "", "only if the last error contains these words")
	cmd.Flags().BoolVar(&all, "all", false, "all keys that are blocked")
	c.addFlags(cmd)
	return cmd
}

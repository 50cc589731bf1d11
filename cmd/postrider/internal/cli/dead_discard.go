package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
)

func (a *app) deadDiscardCommand() *cobra.Command {
	var f filterFlags
	var c change
	var all bool
	allowed := admin.Discard.From()
	cmd := &cobra.Command{
		Use:   "discard {ID... | --all}",
		Short: "Remove dead or parked messages for good, or messages of the log",
		Long: "Removes messages that are dead or parked. They are never delivered; the audit log keeps their content. Messages of the\n" +
			"same key that wait behind them continue. A message that the relay still sends by itself (retry or held) must be parked\n" +
			"first: postrider dead park ID.\n\n" +
			"A message given by ID may also still be in the log: the relays of the feed then skip it. A relay that is already sending\n" +
			"it may still deliver it. At most 1,000 messages of a feed can be excluded this way at a time.\n\n" +
			"--json prints an object with: action, done, count, sample.",
		Example: "  postrider dead discard --all --error 'unknown customer' --dry-run\n" +
			"  postrider dead discard 01890a5d-ac96-774b-bcce-b302099a8057 --reason 'sent by hand' --yes",
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			filters, err := f.choose(args, all, time.Now(), allowed, allowed)
			if err != nil {
				return err
			}
			return a.act(ctx, d, c, admin.Discard, filters)
		}),
	}
	f.addFlags(cmd)
	f.addError(cmd)
	f.addStatus(cmd, allowed)
	cmd.Flags().BoolVar(&all, "all", false, "all that match the filters")
	c.addFlags(cmd)
	return cmd
}

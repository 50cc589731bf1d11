package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "dead",
		Short: "List, replay, edit, park or discard dead letters",
		Long: "A message that has used up its attempts is a dead letter. It stays deferred until an operator replays, edits, parks or\n" +
			"discards it. It holds back later messages of its key, unless the feed has order skip. With --consumer the commands work on\n" +
			"the messages that a consumer, a program with an inbox, could not handle; that program retries them.",
		Example: "  postrider dead ls --since 2h --error 'too large'\n" +
			"  postrider dead replay --all --type order.placed --rate 100 --reason 'consumer fixed'",
	})
	cmd.AddCommand(a.deadListCommand(), a.deadShowCommand(), a.deadReplayCommand(), a.deadEditCommand(), a.deadParkCommand(),
		a.deadDiscardCommand())
	return cmd
}

func (a *app) deadListCommand() *cobra.Command {
	var f filterFlags
	var limit int
	var wide bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List messages that are dead or parked, oldest first",
		Long: "Lists deferred messages, oldest first: dead and parked ones, or those with the --status given. Held messages wait for a\n" +
			"queue, topic or endpoint that rejects everything; the relay sends them by itself when it accepts messages again.\n\n" +
			"--json prints an array of objects with: id, feed, consumer, seq, shard, status, name, type, topic, key, tenant, attempts,\n" +
			"blocking, error, enqueued, deferred, tried, available, job, bare.",
		Example: "  postrider dead ls --feed orders --since 2h\n" +
			"  postrider dead ls --consumer billing\n" +
			"  postrider dead ls --status held --feed orders\n" +
			"  postrider dead ls --error 'schema mismatch' --status dead --json",
		Args: noArguments,
		RunE: a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
			filter, err := f.parse(time.Now(), deferredStatuses, deadStatuses)
			if err != nil {
				return err
			}
			all, more, err := readDeadLetters(ctx, d, filter, limit)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				if err := a.checkWhose(ctx, d, filter.Feed); err != nil {
					return err
				}
			}
			a.noteEnd(len(all), more, "messages")
			return a.list(all, wide)
		}),
	}
	f.addFlags(cmd)
	f.addError(cmd)
	f.addStatus(cmd, deferredStatuses)
	addListFlags(cmd, &limit, &wide)
	return cmd
}

// readDeadLetters returns up to limit matching messages, and reports whether there are more.
func readDeadLetters(ctx context.Context, d operator, filter admin.Filter, limit int) (all []listed, more bool, err error) {
	var after *feeds.Deferred
	for {
		page := pageSize
		if limit > 0 {
			page = min(page, limit-len(all)+1) // one more than needed, to see if there are more
		}
		found, err := d.List(ctx, filter, after, page)
		if err != nil {
			return nil, false, err
		}
		for i := range found {
			all = append(all, listDeferred(&found[i]))
		}
		if limit > 0 && len(all) > limit {
			return all[:limit], true, nil
		}
		if len(found) < page {
			return all, false, nil
		}
		after = &found[len(found)-1]
	}
}

func (a *app) deadShowCommand() *cobra.Command {
	var feed string
	var r reveal
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all details of a deferred message",
		Long: "Shows a message with its last error, its headers and its payload (as text if it is JSON or UTF-8), once for each feed\n" +
			"that has deferred it. " + revealHelp +
			"--json prints an array with one object a feed: the fields of \"dead ls\", and headers, content_type, payload (JSON),\n" +
			"payload_text (other text) or payload_base64 (anything else), redacted (paths of what is not shown), and what else the\n" +
			"message has.",
		Example: "  postrider dead show 01890a5d-ac96-774b-bcce-b302099a8057\n" +
			"  postrider dead show 01890a5d-ac96-774b-bcce-b302099a8057 --json | jq '.[0].payload' > payload.json",
		Args: named("ID"),
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			found, err := d.List(ctx, admin.Filter{Feed: feed, ID: ids[0]}, nil, pageSize)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return a.notDeferred(ids[0])
			}
			if err := r.begin(a); err != nil {
				return err
			}
			all := make([]shown, len(found))
			for i := range found {
				if all[i], err = r.show(ctx, d, listDeferred(&found[i]), &found[i].Message); err != nil {
					return err
				}
			}
			if a.asJSON {
				return a.json(all)
			}
			return a.show(all)
		}),
	}
	addWhose(cmd, &feed, "only ")
	r.addFlags(cmd)
	return cmd
}

func (a *app) notDeferred(id postrider.ID) error {
	text := fmt.Sprintf("message %s is not deferred", id)
	return hintedError{wordedError{admin.ErrNoMessage, text}, "it may be in the log: " + a.next("messages show", id.String())}
}

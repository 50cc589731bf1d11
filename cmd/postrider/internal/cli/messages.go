package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
)

// pageSize is the number of messages per query.
const pageSize = 1000

func (a *app) messagesCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "messages",
		Short: "List, show and follow messages of the log",
		Long:  "Shows the messages that the store still holds, with their status on the way to a feed. It changes nothing.",
		Example: "  postrider messages ls --type order.placed --since 2h\n" +
			"  postrider messages show 01890a5d-ac96-774b-bcce-b302099a8057\n" +
			"  postrider messages tail --json",
	})
	cmd.AddCommand(a.messagesListCommand(), a.messagesShowCommand(), a.messagesTailCommand())
	return cmd
}

func (a *app) messagesListCommand() *cobra.Command {
	var f filterFlags
	var limit int
	var wide bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List messages, newest first",
		Long: "Lists the messages of the log, newest first, with their status on the way to a feed.\n\n" +
			"--json prints an array of objects with: id, feed, seq, shard, status, type, topic, key, tenant, attempts, error,\n" +
			"enqueued, available.",
		Example: "  postrider messages ls --status pending\n" +
			"  postrider messages ls --feed orders --key order/42 --since 2h --wide",
		Args: noArguments,
		RunE: a.onAdmin(func(ctx context.Context, d operator, _ []string) error {
			filter, err := f.parse(time.Now(), allStatuses, nil)
			if err != nil {
				return err
			}
			if filter.Feed, err = a.theFeed(ctx, d, filter.Feed); err != nil {
				return err
			}
			all, more, err := readLog(ctx, d, filter, limit)
			if err != nil {
				return err
			}
			a.noteEnd(len(all), more, "messages")
			return a.list(all, wide)
		}),
	}
	f.addFlags(cmd)
	f.addStatus(cmd, allStatuses)
	addListFlags(cmd, &limit, &wide)
	return cmd
}

func addListFlags(cmd *cobra.Command, limit *int, wide *bool) {
	cmd.Flags().IntVar(limit, "limit", 100, "at most this many; 0: all")
	addWide(cmd, wide)
}

func addWide(cmd *cobra.Command, wide *bool) {
	cmd.Flags().BoolVar(wide, "wide", false, "all columns, and nothing cut")
}

// noteEnd prints a note if a list is empty or incomplete.
func (a *app) noteEnd(n int, more bool, what string) {
	switch {
	case more:
		a.notef("there are more; to see them: add --limit or filters")
	case n == 0:
		a.notef("no %s match", what)
	}
}

// readLog returns up to limit matching messages, and reports whether there are more.
func readLog(ctx context.Context, d operator, filter admin.Filter, limit int) (all []listed, more bool, err error) {
	var before int64
	for {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(all)+1) // one more than needed, to see if there are more
		}
		page, err := d.Messages(ctx, filter.Feed, filter, before, size)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Items {
			if limit > 0 && len(all) == limit {
				return all, true, nil
			}
			all = append(all, listLogged(&page.Items[i]))
		}
		if before = page.Next; before == 0 {
			return all, false, nil
		}
	}
}

// find returns a message of the log, or nil if the log does not hold it.
func find(ctx context.Context, d operator, feed string, id postrider.ID) (*admin.Logged, error) {
	var before int64
	for {
		page, err := d.Messages(ctx, feed, admin.Filter{Feed: feed, ID: id}, before, 1)
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 {
			return &page.Items[0], nil
		}
		if before = page.Next; before == 0 {
			return nil, nil
		}
	}
}

func (a *app) messagesShowCommand() *cobra.Command {
	var feed string
	var r reveal
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all details of a message, for each feed",
		Long: "Shows a message with its headers and its payload, as text if it is JSON or UTF-8, and its status on the way to\n" +
			"each feed. " + revealHelp +
			"--json prints an array with one object a feed: the fields of \"messages ls\", and headers, content_type, payload\n" +
			"(JSON), payload_text (other text) or payload_base64 (anything else), redacted (paths of what is not shown), and what\n" +
			"else the message has; excluded, if an operator has made the relays skip it.",
		Example: "  postrider messages show 01890a5d-ac96-774b-bcce-b302099a8057\n" +
			"  postrider messages show 01890a5d-ac96-774b-bcce-b302099a8057 --json | jq '.[0].payload'",
		Args: named("ID"),
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			feeds, err := d.ListFeeds(ctx)
			if err != nil {
				return err
			}
			if err := r.begin(a); err != nil {
				return err
			}
			var all []shown
			for _, f := range feeds {
				if feed != "" && feed != f.Name {
					continue
				}
				m, err := find(ctx, d, f.Name, ids[0])
				if err != nil {
					return err
				}
				if m == nil {
					continue
				}
				one, err := r.show(ctx, d, listLogged(m), &m.Message)
				if err != nil {
					return err
				}
				all = append(all, one)
			}
			if j, err := d.Journey(ctx, ids[0]); err == nil {
				for i := range all {
					all[i].Excluded = slices.ContainsFunc(j.Feeds, func(l admin.Leg) bool { return l.Feed == all[i].Feed && l.Excluded })
				}
			}
			if len(all) == 0 {
				text := fmt.Sprintf("the log does not hold message %s for any feed", ids[0])
				return hintedError{wordedError{admin.ErrNoMessage, text}, "it may have been deferred: " + a.next("dead show", ids[0].String())}
			}
			if a.asJSON {
				return a.json(all)
			}
			return a.show(all)
		}),
	}
	cmd.Flags().StringVar(&feed, "feed", "", "only for this feed")
	r.addFlags(cmd)
	return cmd
}

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

func (a *app) deadParkCommand() *cobra.Command {
	var c change
	var feed string
	cmd := &cobra.Command{
		Use:   "park ID...",
		Short: "Park messages, so that later messages of their keys continue",
		Long: "Parks messages that are dead, held or being retried, and messages that are still in the log ahead of a feed: the relays\n" +
			"of the feed then skip them. A relay that is already sending one may still deliver it. Parked messages stay until an operator\n" +
			"replays, edits or discards them. At most 1,000 messages of a feed can be excluded from the log this way at a time.\n\n" +
			"--json prints an object with: action, done, count, sample.",
		Example: "  postrider dead park 01890a5d-ac96-774b-bcce-b302099a8057 --dry-run\n" +
			"  postrider dead park 01890a5d-ac96-774b-bcce-b302099a8057 --reason 'wrong customer' --yes",
		RunE: a.onAdmin(func(ctx context.Context, d operator, args []string) error {
			if len(args) == 0 {
				return usagef("which messages? Name their IDs")
			}
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			filters := make([]admin.Filter, len(ids))
			for i, id := range ids {
				filters[i] = admin.Filter{Feed: feed, ID: id, Statuses: admin.Park.From()}
			}
			return a.act(ctx, d, c, admin.Park, filters)
		}),
	}
	addWhose(cmd, &feed, "only ")
	c.addFlags(cmd)
	return cmd
}

// findAhead returns a message that is still in the log, once for each feed that has not passed it.
// It returns an error if there is no such feed, or if the message is deferred in a state that does
// not allow the action.
func (a *app) findAhead(ctx context.Context, d operator, act admin.Act, filter admin.Filter) (ahead []listed, err error) {
	deferred, err := d.List(ctx, admin.Filter{Feed: filter.Feed, ID: filter.ID}, nil, 1)
	if err != nil {
		return nil, err
	}
	if len(deferred) > 0 {
		return nil, a.cannot(act, &deferred[0])
	}
	if act != admin.Park && act != admin.Discard {
		return nil, a.notDeferred(filter.ID)
	}
	all, err := d.ListFeeds(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if filter.Feed != "" && filter.Feed != f.Name {
			continue
		}
		m, err := find(ctx, d, f.Name, filter.ID)
		if err != nil {
			return nil, err
		}
		if m != nil && m.Status == feeds.StatusPending {
			ahead = append(ahead, listLogged(m))
		}
	}
	if len(ahead) == 0 {
		return nil, a.notDeferred(filter.ID)
	}
	if _, ok := d.(admin.Excluder); !ok {
		text := fmt.Sprintf("message %s waits in the table, and a relay may already be sending it", filter.ID)
		return nil, hintedError{wordedError{admin.ErrRefused, text}, "stop the relays, and change its row, or wait until it is deferred: " + a.next("dead ls")}
	}
	return ahead, nil
}

// cannot returns the error for an action that the state of the message does not allow, with a
// suggestion.
func (a *app) cannot(act admin.Act, d *feeds.Deferred) error {
	text := fmt.Sprintf("message %s is %s: it cannot be %s", d.ID, d.Status, map[admin.Act]string{
		admin.Retry: "retried", admin.Skip: "skipped", admin.Park: "parked", admin.Discard: "discarded",
	}[act])
	next := "to see it: " + a.next("dead show", d.ID.String())
	switch {
	case act == admin.Discard && (d.Status == feeds.StatusHeld || d.Status == feeds.StatusRetry):
		next = "the relay still sends it by itself; to park it first: " + a.next("dead park", d.ID.String())
	case d.Status == feeds.StatusWaiting:
		next = "it waits behind another message of its key: " + a.next("keys blocked")
	}
	return hintedError{wordedError{admin.ErrRefused, text}, next}
}

// noContent returns the error for a message that cannot be sent or edited because the store could
// not keep its content.
func (a *app) noContent(d *feeds.Deferred) error {
	text := fmt.Sprintf("message %s was deferred without its content, because the store refused it", d.ID)
	return hintedError{
		wordedError{admin.ErrBare, text},
		"to send it from the log, when the store accepts it: " + a.next("replay", d.ID.String(), "--feed", d.Feed) +
			"; or remove it: " + a.next("dead discard", d.ID.String()),
	}
}

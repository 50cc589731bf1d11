package cli

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// completeTime is how long shell completion waits for the database.
const completeTime = 3 * time.Second

// completer returns candidates for completion, each with an optional description after a tab.
type completer func(ctx context.Context, d operator) ([]string, error)

// addCompletions registers completions from the database for all subcommands: names of feeds and
// consumers, and the IDs of deferred messages.
func (a *app) addCompletions(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.addCompletions(sub)
	}
	for flag, known := range map[string]completer{"feed": feedNames, "consumer": consumerNames} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, a.completion(known)) // cannot fail: the flag exists
		}
	}
	_, place, _ := strings.Cut(cmd.Use, " ")
	switch {
	case cmd.Name() == "add":
	case strings.HasPrefix(place, "FEED"):
		cmd.ValidArgsFunction = a.completion(feedNames)
	case strings.HasPrefix(place, "ID") && cmd.Parent().Name() == "dead":
		cmd.ValidArgsFunction = a.completion(deferredIDs)
	}
}

func (a *app) completion(known completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		var words []string
		err := a.db.choose(func(path string) (*config.File, error) { return a.useConfig(path, false) })
		if err == nil {
			err = a.withAdmin(ctx, func(_ *pgxpool.Pool, d operator) error {
				words, err = known(ctx, d)
				return err
			})
		}
		if err != nil {
			cobra.CompErrorln(a.scrub(err.Error()))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func feedNames(ctx context.Context, d operator) (names []string, err error) {
	feeds, err := d.ListFeeds(ctx)
	for _, f := range feeds {
		names = append(names, f.Name)
	}
	return names, err
}

func consumerNames(ctx context.Context, d operator) (names []string, err error) {
	standing, err := d.Gauges(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range standing.Consumers {
		names = append(names, c.Name)
	}
	return names, nil
}

func deferredIDs(ctx context.Context, d operator) (ids []string, err error) {
	found, err := d.List(ctx, admin.Filter{Statuses: deadStatuses}, nil, pageSize)
	for i := range found {
		m := &found[i].Message
		ids = append(ids, m.ID.String()+"\t"+m.Type)
	}
	return ids, err
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// withAdmin opens the admin API of the database and calls f.
func (a *app) withAdmin(ctx context.Context, f func(pool *pgxpool.Pool, d operator) error) error {
	d, pool, end, err := a.openAdmin(ctx)
	if end != nil {
		defer end()
	}
	if err != nil {
		return err
	}
	if err = f(pool, d); !errors.Is(err, feeds.ErrSchema) {
		return a.hintAdmin(a.db.explain(err))
	}
	if errors.As(err, new(hintedError)) {
		return err
	}
	return a.db.hintMigrate(err)
}

// onAdmin returns the RunE of a command that needs only the admin API and its arguments.
func (a *app) onAdmin(f func(ctx context.Context, d operator, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.withAdmin(cmd.Context(), func(_ *pgxpool.Pool, d operator) error { return f(cmd.Context(), d, args) })
	}
}

// hintAdmin adds a suggested command to an error of the admin API.
func (a *app) hintAdmin(err error) error {
	var refused *admin.RefusedError
	var none *feeds.NoFeedError
	switch {
	case err == nil || errors.As(err, new(hintedError)):
		return err
	case errors.As(err, &refused):
		return hintedError{wordedError{err, refused.Reason}, refused.Remedy}
	case errors.As(err, &none):
		return hintedError{wordedError{err, none.Error()}, "for the list: " + a.next("feeds ls")}
	case errors.Is(err, admin.ErrNoFeed):
		return hintedError{err, "for the list: " + a.next("feeds ls")}
	case errors.Is(err, admin.ErrNoMessage):
		return hintedError{err, "for the list: " + a.next("dead ls")}
	}
	return err
}

// wordedError replaces the text of an error.
type wordedError struct {
	error
	text string
}

func (e wordedError) Error() string { return e.text }
func (e wordedError) Unwrap() error { return e.error }

// next returns a command line for the same schema, with its words quoted for a shell.
func (a *app) next(command string, words ...string) string {
	line := "postrider " + command
	for _, w := range words {
		line += " " + phrase.ShellWord(w)
	}
	return line + a.db.commandFlags()
}

// change holds the flags of a command that the audit log records.
type change struct {
	danger
	why string
}

// addFlags adds the flags of commands that ask for confirmation.
func (c *change) addFlags(cmd *cobra.Command) {
	c.danger.addFlags(cmd)
	c.addReason(cmd)
}

// addReason adds the flag of commands that can be undone, and so do not ask for confirmation.
func (c *change) addReason(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.why, "reason", "", "why, for the record; see: postrider audit ls")
}

func (c *change) by() admin.By { return admin.By{Who: actor(), Why: c.why} }

// actor returns the user's name for the audit log.
func actor() string {
	if who := os.Getenv("POSTRIDER_ACTOR"); who != "" {
		return who
	}
	name := cmp.Or(os.Getenv("USER"), "unknown")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// theFeed returns the named feed, or the only one if the name is empty.
func (a *app) theFeed(ctx context.Context, d operator, name string) (string, error) {
	names, err := feedNames(ctx, d)
	if err != nil {
		return "", err
	}
	switch {
	case name != "" && !slices.Contains(names, name):
		return "", wordedError{admin.ErrNoFeed, "there is no feed " + phrase.ShellWord(name)}
	case name != "":
		return name, nil
	case len(names) == 0:
		return "", hintedError{wordedError{admin.ErrNoFeed, "there is no feed yet"}, "to create one: " + a.next("feeds add NAME")}
	case len(names) > 1:
		return "", hintedError{usagef("which feed?"), "add --feed with one of: " + strings.Join(names, ", ")}
	}
	return names[0], nil
}

// named requires exactly one argument, the name of what the command works on.
func named(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usagef("%s takes one %s", cmd.CommandPath(), what)
		}
		return nil
	}
}

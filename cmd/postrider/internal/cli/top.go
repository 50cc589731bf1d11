package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/postrider/postrider/cmd/postrider/internal/top"
)

// topOptions holds the flags of "postrider top".
type topOptions struct {
	interval time.Duration
	once     bool
}

// onceWidth is the width of a frame if the output is not a terminal.
const onceWidth = 120

// minInterval prevents the queries from causing the load that they show.
const minInterval = 100 * time.Millisecond

func (a *app) topCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the feeds",
		Long: "Shows all feeds and blocked keys, and refreshes every second. Keys: q quits, up and down (or k and j) select a feed,\n" +
			"enter shows its blocked keys and dead letters, esc goes back, p pauses and resumes the screen (not the feeds), ? shows\n" +
			"the keys.\n\n" +
			"IN/S and OUT/S, messages enqueued and delivered a second, are estimates over the last seconds. IN/S counts the\n" +
			"numbers that the log has assigned, including those of transactions that were rolled back. OUT/S is IN/S minus the\n" +
			"growth of PENDING, so deferred messages count as delivered. LAG is the age of the oldest pending message.",
		Example: "  postrider top\n" +
			"  postrider top --once\n" +
			"  postrider top --once --json | jq '.feeds[] | select(.state != \"ok\")'",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.validate(a.asJSON); err != nil {
				return err
			}
			return a.top(cmd.Context(), o)
		},
	}
	cmd.Flags().DurationVar(&o.interval, "interval", time.Second, "refresh interval; longer if a refresh takes longer")
	cmd.Flags().BoolVar(&o.once, "once", false, "query twice, for the rates, print one frame as plain text and exit")
	return cmd
}

func (o *topOptions) validate(asJSON bool) error {
	var errs []error
	if o.interval < minInterval {
		errs = append(errs, usagef("--interval is %s: want at least %s", o.interval, minInterval))
	}
	if asJSON && !o.once {
		errs = append(errs, usagef("--json needs --once"))
	}
	return errors.Join(errs...)
}

func (a *app) top(ctx context.Context, o topOptions) error {
	var screen *terminal
	if !o.once {
		var err error
		if screen, err = a.openTerminal(); err != nil {
			return err
		}
	}
	return a.withAdmin(ctx, func(pool *pgxpool.Pool, d operator) error {
		look := func(ctx context.Context, inside string) (top.Snapshot, error) { return a.look(ctx, pool, d, inside) }
		state := &top.State{Name: a.db.described()}
		// Make the first query before the screen is cleared, so that a wrong address is reported on
		// the original screen.
		first, err := look(ctx, "")
		if err != nil {
			return err
		}
		state.Add(first)
		if o.once {
			return a.topOnce(ctx, state, o.interval, look)
		}
		state.Colour = a.colours
		s := topScreen{screen, state, o.interval, look, func(err error) string { return a.scrub(err.Error()) }}
		return s.run(ctx)
	})
}

func (a *app) topOnce(ctx context.Context, state *top.State, interval time.Duration, look lookFunc) error {
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return ctx.Err()
	}
	second, err := look(ctx, "")
	if err != nil {
		return err
	}
	state.Add(second)
	if a.asJSON {
		return a.json(state.Report())
	}
	width := onceWidth
	if out, ok := a.out.(*os.File); ok {
		if w, _, err := term.GetSize(int(out.Fd())); err == nil && w > 0 {
			width = w
		}
	}
	for _, line := range top.Frame(state, width, 0, second.At) {
		if _, err := a.out.Write([]byte(line + "\n")); err != nil {
			return err
		}
	}
	return nil
}

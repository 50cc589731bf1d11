package cli

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/relay"
)

// fillFile returns the file with settings of the environment added where the file has none.
func fillFile(e *relay.Environment, f *config.File) (*config.File, error) {
	filled := *f
	filled.Feeds, filled.Reconcilers = maps.Clone(f.Feeds), maps.Clone(f.Reconcilers)
	var used []string
	for name, feed := range f.Feeds {
		used = append(used, e.Fill(&feed.Relay)...)
		filled.Feeds[name] = feed
	}
	for name, reconciler := range f.Reconcilers {
		variable := reconcilerVariable(name)
		if text := os.Getenv(variable); text != "" && reconciler.Cron == "" && reconciler.Every == 0 {
			reconciler.Cron = text
			filled.Reconcilers[name] = reconciler
			used = append(used, variable)
		}
	}
	if err := filled.Validate(); err != nil {
		slices.Sort(used)
		return nil, usagef("the file and the environment (%s) contradict each other: %w", strings.Join(slices.Compact(used), ", "), err)
	}
	return &filled, nil
}

// reconcilerVariable returns the variable that schedules a reconciler, such as
// RECONCILE_SESSION_PAYOUT_CRON for session-payout.
func reconcilerVariable(name string) string {
	return "RECONCILE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_CRON"
}

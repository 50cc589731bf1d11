package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// filterFlags are the flags that select messages.
type filterFlags struct {
	admin.Filter
	since, until string
	statuses     []string
}

func (f *filterFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addWhose(cmd, &f.Feed, "")
	flags.StringVar(&f.Type, "type", "", "of this type")
	flags.StringVar(&f.Topic, "topic", "", "to this topic")
	flags.StringVar(&f.Key, "key", "", "with this ordering key")
	flags.StringVar(&f.Tenant, "tenant", "", "of this tenant")
	flags.StringVar(&f.since, "since", "", "enqueued then or later: an RFC 3339 time, or a duration such as 2h for two hours ago")
	flags.StringVar(&f.until, "until", "", "enqueued before then")
}

// addStatus adds the flag --status, with the allowed statuses.
func (f *filterFlags) addStatus(cmd *cobra.Command, allowed []feeds.Status) {
	cmd.Flags().StringSliceVar(&f.statuses, "status", nil, "with one of these, separated by commas: "+join(allowed))
	words := strings.Split(join(allowed), ", ")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // it was defined above
}

func (f *filterFlags) addError(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Error, "error", "", "whose last error contains these words")
}

// parse returns the filter. Without --status it has the statuses of otherwise. It reports all
// mistakes at once.
func (f *filterFlags) parse(now time.Time, allowed, otherwise []feeds.Status) (admin.Filter, error) {
	filter := f.Filter
	filter.Statuses = otherwise
	var errs []error
	var err error
	if filter.Since, err = parseTime(f.since, now); err != nil {
		errs = append(errs, fmt.Errorf("--since: %w", err))
	}
	if filter.Until, err = parseTime(f.until, now); err != nil {
		errs = append(errs, fmt.Errorf("--until: %w", err))
	}
	if len(f.statuses) > 0 {
		filter.Statuses = nil
	}
	for _, s := range f.statuses {
		if !slices.Contains(allowed, feeds.Status(s)) {
			errs = append(errs, fmt.Errorf("--status: %q is none of %s", s, join(allowed)))
		}
		filter.Statuses = append(filter.Statuses, feeds.Status(s))
	}
	if len(errs) > 0 {
		return filter, usageError{errors.Join(errs...)}
	}
	return filter, nil
}

// narrows reports whether a flag other than --feed restricts the messages.
func (f *filterFlags) narrows() bool {
	return f.Type+f.Topic+f.Key+f.Tenant+f.Error+f.since+f.until != "" || len(f.statuses) > 0
}

var (
	allStatuses = []feeds.Status{
		feeds.StatusPending, feeds.StatusPublished, feeds.StatusScheduled, feeds.StatusRetry,
		feeds.StatusHeld, feeds.StatusWaiting, feeds.StatusDead, feeds.StatusParked,
	}
	deferredStatuses = allStatuses[2:]
	deadStatuses     = allStatuses[6:]
)

func join(statuses []feeds.Status) string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// parseTime parses a time, or a duration before now. The empty string is the zero time.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q is neither a time such as %s nor a duration such as 2h", text, now.UTC().Format(time.RFC3339))
	}
	return t, nil
}

// parseIDs parses the arguments, and reports every one that is not an ID.
func parseIDs(args []string) ([]postrider.ID, error) {
	var ids []postrider.ID
	var errs []error
	for _, arg := range args {
		id, err := postrider.ParseID(arg)
		if err != nil {
			errs = append(errs, fmt.Errorf("%q is not the ID of a message", arg))
		}
		ids = append(ids, id)
	}
	if len(errs) > 0 {
		return nil, usageError{errors.Join(errs...)}
	}
	return ids, nil
}

// choose returns one filter for each ID in args, or with --all the single filter of the flags.
func (f *filterFlags) choose(args []string, all bool, now time.Time, allowed, otherwise []feeds.Status) ([]admin.Filter, error) {
	filter, err := f.parse(now, allowed, otherwise)
	if err != nil {
		return nil, err
	}
	switch {
	case len(args) > 0 && (all || f.narrows()):
		return nil, usagef("IDs and --all or filters contradict each other")
	case len(args) == 0 && !all:
		return nil, usagef("no messages selected: add their IDs, or --all for all that match the filters")
	case all:
		return []admin.Filter{filter}, nil
	}
	ids, err := parseIDs(args)
	filters := make([]admin.Filter, len(ids))
	for i, id := range ids {
		filters[i] = admin.Filter{Feed: filter.Feed, ID: id, Statuses: allowed}
	}
	return filters, err
}

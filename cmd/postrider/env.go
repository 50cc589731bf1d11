package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/config"
	"github.com/postrider/postrider/relay"
)

// alias is a variable that other outboxes have made known, and the option of a relay that it sets.
type alias struct {
	name, key string
	set       func(c *relay.Config, text string) error
}

var aliases = []alias{
	{"OUTBOX_POLL_INTERVAL_MS", "poll_max", setMillis(func(c *relay.Config) *time.Duration { return &c.PollMax })},
	{"INTEV_DISPATCH_INTERVAL_MS", "poll_max", setMillis(func(c *relay.Config) *time.Duration { return &c.PollMax })},
	{"OUTBOX_BATCH_SIZE", "batch", setNumber(func(c *relay.Config) *int { return &c.BatchSize })},
	{"INTEV_BATCH_SIZE", "batch", setNumber(func(c *relay.Config) *int { return &c.BatchSize })},
	{"OUTBOX_MAX_ATTEMPTS", "retry_attempts", setNumber(func(c *relay.Config) *int { return &c.Retry.Attempts })},
	{"INTEV_MAX_ATTEMPTS", "retry_attempts", setNumber(func(c *relay.Config) *int { return &c.Retry.Attempts })},
	{"OUTBOX_BACKOFF_BASE_MS", "retry_first", setMillis(func(c *relay.Config) *time.Duration { return &c.Retry.First })},
	{"OUTBOX_MAX_BACKOFF_MS", "retry_most", setMillis(func(c *relay.Config) *time.Duration { return &c.Retry.Most })},
	{"INTEV_BACKOFF_SERIES", "retry_pauses", setSeries},
}

// enabledVariable says whether a relay is to start at all.
const enabledVariable = "INTEV_ENABLED"

func setMillis(field func(*relay.Config) *time.Duration) func(*relay.Config, string) error {
	return func(c *relay.Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return errors.New("want a whole number of milliseconds, at least 1")
		}
		*field(c) = time.Duration(n) * time.Millisecond
		return nil
	}
}

func setNumber(field func(*relay.Config) *int) func(*relay.Config, string) error {
	return func(c *relay.Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return errors.New("want a whole number of at least 1")
		}
		*field(c) = int(n)
		return nil
	}
}

func setSeries(c *relay.Config, text string) error {
	c.Retry.Pauses = nil
	for part := range strings.SplitSeq(text, ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a pause: want durations such as 1s,5s,30s", part)
		}
		c.Retry.Pauses = append(c.Retry.Pauses, d)
	}
	return nil
}

// environment is what the aliases say: for each option, one of its variables.
type environment map[string]alias

// readEnvironment reports everything that is wrong with the variables at once. An empty variable counts as not set.
func readEnvironment() (env environment, enabled bool, err error) {
	env, enabled = make(environment), true
	var errs []error
	if text := os.Getenv(enabledVariable); text != "" {
		if enabled, err = strconv.ParseBool(text); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: want true or false", enabledVariable, text))
		}
	}
	for _, a := range aliases {
		text := os.Getenv(a.name)
		if text == "" {
			continue
		}
		var mine, other relay.Config
		if err := a.set(&mine, text); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: %w", a.name, text, err))
			continue
		}
		if first, ok := env[a.key]; ok {
			if _ = first.set(&other, os.Getenv(first.name)); !reflect.DeepEqual(mine, other) { // was read before
				errs = append(errs, contradiction(first.name, a.name, "both mean "+a.key))
			}
			continue
		}
		env[a.key] = a
	}
	for _, key := range []string{"retry_first", "retry_most"} {
		if series, ok := env["retry_pauses"]; ok && env[key].name != "" {
			errs = append(errs, contradiction(env[key].name, series.name, "a series says every pause"))
		}
	}
	if len(errs) > 0 {
		return nil, false, usageError{errors.Join(errs...)}
	}
	return env, enabled, nil
}

func contradiction(a, b, why string) error {
	return fmt.Errorf("%s=%s and %s=%s contradict each other: %s", a, os.Getenv(a), b, os.Getenv(b), why)
}

// overlay sets what the environment says and nobody else has. Where that does not go together with a default, the default
// gives way. It returns the variables that were used.
func (e environment) overlay(c *relay.Config, said func(key string) bool) (used []string) {
	series := said("retry_pauses")
	pauses := said("retry_first") || said("retry_most")
	for _, a := range aliases {
		if e[a.key].name != a.name || said(a.key) || a.key == "retry_pauses" && pauses ||
			series && (a.key == "retry_first" || a.key == "retry_most") {
			continue
		}
		_ = a.set(c, os.Getenv(a.name)) // was read before
		used = append(used, a.name)
		switch a.key {
		case "poll_max":
			if !said("poll_min") {
				c.PollMin = min(cmp.Or(c.PollMin, 5*time.Millisecond), c.PollMax)
			}
		case "batch":
			if !said("read_ahead") {
				c.ReadAhead = max(cmp.Or(c.ReadAhead, 4000), c.BatchSize)
			}
		case "retry_most":
			if !said("retry_first") && e["retry_first"].name == "" {
				c.Retry.First = min(cmp.Or(c.Retry.First, time.Second), c.Retry.Most)
			}
		case "retry_pauses":
			c.Retry.First, c.Retry.Most = 0, 0
		}
	}
	return used
}

// fill returns the file with what the environment says, where the file says nothing.
func (e environment) fill(f *config.File) (*config.File, error) {
	filled := *f
	filled.Feeds = maps.Clone(f.Feeds)
	var used []string
	for name, feed := range f.Feeds {
		said := map[string]bool{
			"poll_min": feed.Relay.PollMin != 0, "poll_max": feed.Relay.PollMax != 0,
			"batch": feed.Relay.BatchSize != 0, "read_ahead": feed.Relay.ReadAhead != 0,
			"retry_attempts": feed.Relay.Retry.Attempts != 0, "retry_first": feed.Relay.Retry.First != 0,
			"retry_most": feed.Relay.Retry.Most != 0, "retry_pauses": len(feed.Relay.Retry.Pauses) > 0,
		}
		used = append(used, e.overlay(&feed.Relay, func(key string) bool { return said[key] })...)
		filled.Feeds[name] = feed
	}
	if err := filled.Validate(); err != nil {
		slices.Sort(used)
		return nil, usagef("the file and the environment (%s) contradict each other: %w", strings.Join(slices.Compact(used), ", "), err)
	}
	return &filled, nil
}

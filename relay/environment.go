package relay

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// alias maps an environment variable of another outbox implementation to an option of the relay.
type alias struct {
	name, key string
	set       func(c *Config, text string) error
}

var aliases = []alias{
	{"OUTBOX_POLL_INTERVAL_MS", "poll_max", setMillis(func(c *Config) *time.Duration { return &c.PollMax })},
	{"INTEV_DISPATCH_INTERVAL_MS", "poll_max", setMillis(func(c *Config) *time.Duration { return &c.PollMax })},
	{"OUTBOX_BATCH_SIZE", "batch", setNumber(func(c *Config) *int { return &c.BatchSize })},
	{"INTEV_BATCH_SIZE", "batch", setNumber(func(c *Config) *int { return &c.BatchSize })},
	{"OUTBOX_MAX_ATTEMPTS", "retry_attempts", setNumber(func(c *Config) *int { return &c.Retry.Attempts })},
	{"INTEV_MAX_ATTEMPTS", "retry_attempts", setNumber(func(c *Config) *int { return &c.Retry.Attempts })},
	{"OUTBOX_BACKOFF_BASE_MS", "retry_first", setMillis(func(c *Config) *time.Duration { return &c.Retry.First })},
	{"OUTBOX_MAX_BACKOFF_MS", "retry_most", setMillis(func(c *Config) *time.Duration { return &c.Retry.Most })},
	{"INTEV_BACKOFF_SERIES", "retry_pauses", setSeries},
}

// enabledVariable turns the relay on or off.
const enabledVariable = "INTEV_ENABLED"

// Variable is an environment variable that [ReadEnvironment] reads. Option is the name of the
// corresponding option in a configuration file; it is empty for the variable that turns the relay
// on or off.
type Variable struct{ Name, Option string }

// Variables returns all variables that [ReadEnvironment] reads.
func Variables() []Variable {
	all := make([]Variable, 0, len(aliases)+1)
	for _, a := range aliases {
		all = append(all, Variable{a.name, a.key})
	}
	return append(all, Variable{Name: enabledVariable})
}

func setMillis(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return errors.New("want a whole number of milliseconds, at least 1")
		}
		*field(c) = time.Duration(n) * time.Millisecond
		return nil
	}
}

func setNumber(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return errors.New("want a whole number of at least 1")
		}
		*field(c) = int(n)
		return nil
	}
}

func setSeries(c *Config, text string) error {
	c.Retry.Pauses = nil
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		d, err := time.ParseDuration(part)
		if n, bare := strconv.ParseInt(part, 10, 32); bare == nil {
			d, err = time.Duration(n)*time.Millisecond, nil
		}
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a pause: want durations such as 1s,5s,30s, or milliseconds such as [1000,5000,30000]", part)
		}
		c.Retry.Pauses = append(c.Retry.Pauses, d)
	}
	return nil
}

// Environment holds the settings from environment variables of other outbox implementations, such
// as OUTBOX_BATCH_SIZE and INTEV_BACKOFF_SERIES, so that a relay that replaces one of them keeps
// its settings. See docs/configuration.md for the list.
type Environment struct {
	// Enabled is false if the relay must not start.
	Enabled bool

	said map[string]alias // by option: the variable that sets it
}

// ReadEnvironment reads the variables and returns all their errors joined. An empty variable counts
// as not set.
func ReadEnvironment() (*Environment, error) {
	env := &Environment{Enabled: true, said: make(map[string]alias)}
	var errs []error
	if text := os.Getenv(enabledVariable); text != "" {
		enabled, err := strconv.ParseBool(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: want true or false", enabledVariable, text))
		}
		env.Enabled = enabled
	}
	for _, a := range aliases {
		text := os.Getenv(a.name)
		if text == "" {
			continue
		}
		var mine, other Config
		if err := a.set(&mine, text); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q: %w", a.name, text, err))
			continue
		}
		if first, ok := env.said[a.key]; ok {
			if _ = first.set(&other, os.Getenv(first.name)); !reflect.DeepEqual(mine, other) { // was read before
				errs = append(errs, contradiction(first.name, a.name, "both mean "+a.key))
			}
			continue
		}
		env.said[a.key] = a
	}
	for _, key := range []string{"retry_first", "retry_most"} {
		if series, ok := env.said["retry_pauses"]; ok && env.said[key].name != "" {
			errs = append(errs, contradiction(env.said[key].name, series.name, "a series says every pause"))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return env, nil
}

func contradiction(a, b, why string) error {
	return fmt.Errorf("%s=%s and %s=%s contradict each other: %s", a, os.Getenv(a), b, os.Getenv(b), why)
}

// Fill sets the fields of c that are zero and that the environment sets. If such a value
// contradicts the default of another field, Fill adjusts that field. It returns the variables that
// it used.
func (e *Environment) Fill(c *Config) (used []string) {
	said := map[string]bool{
		"poll_min": c.PollMin != 0, "poll_max": c.PollMax != 0, "batch": c.BatchSize != 0, "read_ahead": c.ReadAhead != 0,
		"retry_attempts": c.Retry.Attempts != 0, "retry_first": c.Retry.First != 0, "retry_most": c.Retry.Most != 0,
		"retry_pauses": len(c.Retry.Pauses) > 0,
	}
	return e.Overlay(c, func(key string) bool { return said[key] })
}

// Overlay is like Fill for a configuration that already has its defaults: said reports whether an
// option, named as in a configuration file, was set explicitly.
func (e *Environment) Overlay(c *Config, said func(key string) bool) (used []string) {
	series := said("retry_pauses")
	pauses := said("retry_first") || said("retry_most")
	for _, a := range aliases {
		if e.said[a.key].name != a.name || said(a.key) || a.key == "retry_pauses" && pauses ||
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
			if !said("retry_first") && e.said["retry_first"].name == "" {
				c.Retry.First = min(cmp.Or(c.Retry.First, time.Second), c.Retry.Most)
			}
		case "retry_pauses":
			c.Retry.First, c.Retry.Most = 0, 0
		}
	}
	return used
}

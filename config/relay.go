package config

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/relay"
)

// relayOption is something that a file can set for a relay: a field of [relay.Config], its name here and its default.
type relayOption struct {
	key, field string
	doc        string
	duration   func(*relay.Config) *time.Duration // one of the three
	number     func(*relay.Config) *int
	fallback   any // nil for a series
	series     func(*relay.Config) *[]time.Duration
}

var relayOptions = []relayOption{
	{"lease", "Lease", "How long the shards of a relay that has died stay with it.",
		func(c *relay.Config) *time.Duration { return &c.Lease }, nil, 10 * time.Second, nil},
	{"batch", "BatchSize", "Most messages in one call of a destination.",
		nil, func(c *relay.Config) *int { return &c.BatchSize }, 500, nil},
	{"read_ahead", "ReadAhead", "Most messages of a shard that are read and not confirmed, or confirmed behind one that is not.",
		nil, func(c *relay.Config) *int { return &c.ReadAhead }, 4000, nil},
	{"poll_min", "PollMin", "Time between two reads while messages keep coming.",
		func(c *relay.Config) *time.Duration { return &c.PollMin }, nil, 5 * time.Millisecond, nil},
	{"poll_max", "PollMax", "Time between two reads of an idle relay.",
		func(c *relay.Config) *time.Duration { return &c.PollMax }, nil, 50 * time.Millisecond, nil},
	{"settle_interval", "SettleInterval", "Least time between two records of progress: what a crash can cause to be sent again.",
		func(c *relay.Config) *time.Duration { return &c.SettleInterval }, nil, 50 * time.Millisecond, nil},
	{"balance_interval", "BalanceInterval", "Time between two checks of the fair share of shards.",
		func(c *relay.Config) *time.Duration { return &c.BalanceInterval }, nil, time.Second, nil},
	{"publish_timeout", "PublishTimeout", "Longest call of a destination.",
		func(c *relay.Config) *time.Duration { return &c.PublishTimeout }, nil, 30 * time.Second, nil},
	{"retry_min", "RetryMin", "Pause after a first failure; it doubles with each.",
		func(c *relay.Config) *time.Duration { return &c.RetryMin }, nil, 100 * time.Millisecond, nil},
	{"retry_max", "RetryMax", "Longest pause between two attempts.",
		func(c *relay.Config) *time.Duration { return &c.RetryMax }, nil, 2 * time.Second, nil},
	{"drain_timeout", "DrainTimeout", "How long a stop waits for what is in flight.",
		func(c *relay.Config) *time.Duration { return &c.DrainTimeout }, nil, 10 * time.Second, nil},
	{"maintain_interval", "MaintainInterval", "Time between two rounds of the log's housekeeping.",
		func(c *relay.Config) *time.Duration { return &c.MaintainInterval }, nil, time.Minute, nil},
	{"canary", "Canary", "Time between two canaries: messages, one a shard, that prove that others would arrive. They are not published.",
		func(c *relay.Config) *time.Duration { return &c.Canary }, nil, 5 * time.Second, nil},
	{"max_attempts", "MaxAttempts", "How often a message that fails by its own fault is sent before it is a dead letter.",
		nil, func(c *relay.Config) *int { return &c.MaxAttempts }, 5, nil},
	{"backoff_base", "BackoffBase", "Pause of such a message after the first attempt; it doubles with each.",
		func(c *relay.Config) *time.Duration { return &c.BackoffBase }, nil, time.Second, nil},
	{"backoff_max", "BackoffMax", "Longest pause between two such attempts.",
		func(c *relay.Config) *time.Duration { return &c.BackoffMax }, nil, 10 * time.Minute, nil},
	{"backoff_series", "BackoffSeries", "The pauses of such a message one by one, instead of backoff_base and backoff_max; the last one is repeated.",
		nil, nil, nil, func(c *relay.Config) *[]time.Duration { return &c.BackoffSeries }},
}

// replaced reports whether the option means nothing because the pauses are given one by one.
func (o *relayOption) replaced(c *relay.Config) bool {
	return len(c.BackoffSeries) > 0 && (o.key == "backoff_base" || o.key == "backoff_max")
}

// fill sets the field to its default if it is zero.
func (o *relayOption) fill(c *relay.Config) {
	if o.replaced(c) {
		return
	}
	if o.duration != nil && *o.duration(c) == 0 {
		*o.duration(c), _ = o.fallback.(time.Duration)
	} else if o.number != nil && *o.number(c) == 0 {
		*o.number(c), _ = o.fallback.(int)
	}
}

// relayMistake is something that package relay has against a configuration, in the words of the file.
type relayMistake struct {
	keys    []string // that it names, in order
	message string
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// checkRelay asks package relay itself, so that there is one opinion on what is allowed.
func checkRelay(c relay.Config) []relayMistake {
	_, err := relay.New(noStore{}, discard.New(), c)
	var found []relayMistake
	for _, err := range flatten(err) {
		var m relayMistake
		m.message = goName.ReplaceAllStringFunc(strings.TrimPrefix(err.Error(), "relay: "), func(name string) string {
			for _, o := range relayOptions {
				if o.field == name {
					m.keys = append(m.keys, o.key)
					return o.key
				}
			}
			return name
		})
		found = append(found, m)
	}
	return found
}

// noStore stands where a check needs a store that it will not use.
type noStore struct{}

func (noStore) Open(context.Context, string, postrider.Member) (postrider.Feed, error) {
	return nil, postrider.ErrUnsupported
}

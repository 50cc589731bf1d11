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
	duration   func(*relay.Config) *time.Duration // one of the two
	number     func(*relay.Config) *int
	fallback   any
}

var relayOptions = []relayOption{
	{"lease", "Lease", "How long the shards of a relay that has died stay with it.",
		func(c *relay.Config) *time.Duration { return &c.Lease }, nil, 10 * time.Second},
	{"batch", "BatchSize", "Most messages in one call of a destination.",
		nil, func(c *relay.Config) *int { return &c.BatchSize }, 500},
	{"read_ahead", "ReadAhead", "Most messages of a shard that are read and not confirmed, or confirmed behind one that is not.",
		nil, func(c *relay.Config) *int { return &c.ReadAhead }, 4000},
	{"poll_min", "PollMin", "Time between two reads while messages keep coming.",
		func(c *relay.Config) *time.Duration { return &c.PollMin }, nil, 5 * time.Millisecond},
	{"poll_max", "PollMax", "Time between two reads of an idle relay.",
		func(c *relay.Config) *time.Duration { return &c.PollMax }, nil, 50 * time.Millisecond},
	{"settle_interval", "SettleInterval", "Least time between two records of progress: what a crash can cause to be sent again.",
		func(c *relay.Config) *time.Duration { return &c.SettleInterval }, nil, 50 * time.Millisecond},
	{"balance_interval", "BalanceInterval", "Time between two checks of the fair share of shards.",
		func(c *relay.Config) *time.Duration { return &c.BalanceInterval }, nil, time.Second},
	{"publish_timeout", "PublishTimeout", "Longest call of a destination.",
		func(c *relay.Config) *time.Duration { return &c.PublishTimeout }, nil, 30 * time.Second},
	{"retry_min", "RetryMin", "Pause after a first failure; it doubles with each.",
		func(c *relay.Config) *time.Duration { return &c.RetryMin }, nil, 100 * time.Millisecond},
	{"retry_max", "RetryMax", "Longest pause between two attempts.",
		func(c *relay.Config) *time.Duration { return &c.RetryMax }, nil, 2 * time.Second},
	{"drain_timeout", "DrainTimeout", "How long a stop waits for what is in flight.",
		func(c *relay.Config) *time.Duration { return &c.DrainTimeout }, nil, 10 * time.Second},
	{"maintain_interval", "MaintainInterval", "Time between two rounds of the log's housekeeping.",
		func(c *relay.Config) *time.Duration { return &c.MaintainInterval }, nil, time.Minute},
}

// fill sets the field to its default if it is zero.
func (o *relayOption) fill(c *relay.Config) {
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

package config

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

// relayOption is a key of a relay in the file: the field of [relay.Config] that it sets, and its
// default.
type relayOption struct {
	key, field string
	doc        string
	duration   func(*relay.Config) *time.Duration // one of duration, number and series is set
	number     func(*relay.Config) *int
	fallback   any // nil for a series
	series     func(*relay.Config) *[]time.Duration
}

var relayOptions = []relayOption{
	{"lease", "Lease", "How long a relay that has died keeps its shards.",
		func(c *relay.Config) *time.Duration { return &c.Lease }, nil, 10 * time.Second, nil},
	{"batch", "BatchSize", "Maximum number of messages in one call of a destination.",
		nil, func(c *relay.Config) *int { return &c.BatchSize }, 500, nil},
	{"read_ahead", "ReadAhead", "Maximum number of messages of a shard that are read and not confirmed, or confirmed behind one that is not.",
		nil, func(c *relay.Config) *int { return &c.ReadAhead }, 4000, nil},
	{"memory", "Memory", "About how many bytes of messages are held, at most a quarter of the memory that the process may have; the feeds of a process share it.",
		nil, func(c *relay.Config) *int { return &c.Memory }, 64 << 20, nil},
	{"poll_min", "PollMin", "Time between two reads while messages keep coming.",
		func(c *relay.Config) *time.Duration { return &c.PollMin }, nil, 5 * time.Millisecond, nil},
	{"poll_max", "PollMax", "Longest time between two reads of an idle relay.",
		func(c *relay.Config) *time.Duration { return &c.PollMax }, nil, 250 * time.Millisecond, nil},
	{"settle_interval", "SettleInterval", "Least time between two records of progress: what a crash can cause to be sent again.",
		func(c *relay.Config) *time.Duration { return &c.SettleInterval }, nil, 50 * time.Millisecond, nil},
	{"balance_interval", "BalanceInterval", "Time between two checks of the fair share of shards.",
		func(c *relay.Config) *time.Duration { return &c.BalanceInterval }, nil, time.Second, nil},
	{"publish_timeout", "PublishTimeout", "Timeout of a call of a destination.",
		func(c *relay.Config) *time.Duration { return &c.PublishTimeout }, nil, 30 * time.Second, nil},
	{"outage.first", "Outage.First", "Backoff after the first failure that no message has caused; doubles with each further one.",
		func(c *relay.Config) *time.Duration { return &c.Outage.First }, nil, 100 * time.Millisecond, nil},
	{"outage.most", "Outage.Most", "Longest such backoff, including its random part.",
		func(c *relay.Config) *time.Duration { return &c.Outage.Most }, nil, 2 * time.Second, nil},
	{"drain_timeout", "DrainTimeout", "How long a stop waits for what is in flight.",
		func(c *relay.Config) *time.Duration { return &c.DrainTimeout }, nil, 10 * time.Second, nil},
	{"maintain_interval", "MaintainInterval", "Time between two rounds of the log's maintenance.",
		func(c *relay.Config) *time.Duration { return &c.MaintainInterval }, nil, time.Minute, nil},
	{"canary", "Canary", "Time between two canaries: messages, one a shard, that prove that others would arrive. They are not published.",
		func(c *relay.Config) *time.Duration { return &c.Canary }, nil, 5 * time.Second, nil},
	{"retry.attempts", "Retry.Attempts", "Attempts of a message that fails for a reason of its own, before it is a dead letter.",
		nil, func(c *relay.Config) *int { return &c.Retry.Attempts }, 5, nil},
	{"retry.first", "Retry.First", "Backoff of such a message after the first attempt; doubles with each further one.",
		func(c *relay.Config) *time.Duration { return &c.Retry.First }, nil, time.Second, nil},
	{"retry.most", "Retry.Most", "Longest backoff between two such attempts, including its random part.",
		func(c *relay.Config) *time.Duration { return &c.Retry.Most }, nil, 10 * time.Minute, nil},
	{"retry.max_age", "Retry.MaxAge", "How long after its first failure such a message is still retried. Default: no limit.",
		func(c *relay.Config) *time.Duration { return &c.Retry.MaxAge }, nil, time.Duration(0), nil},
	{"retry.pauses", "Retry.Pauses", "The backoffs of such a message one by one, instead of first and most; the last one repeats. Without attempts, there is one more attempt than backoffs.",
		nil, nil, nil, func(c *relay.Config) *[]time.Duration { return &c.Retry.Pauses }},
}

// relaySections documents the sections.
var relaySections = map[string]string{
	"retry":  "Attempts and backoffs of a message that fails for a reason of its own.",
	"outage": "Backoffs after failures that no message has caused, which are retried until they are over.",
}

// section splits the key of an option that is in a section, such as retry.first.
func (o *relayOption) section() (section, key string) {
	if section, key, ok := strings.Cut(o.key, "."); ok {
		return section, key
	}
	return "", o.key
}

// said reports whether the option is set or has a default.
func (o *relayOption) said(c *relay.Config) bool {
	switch {
	case o.series != nil:
		return len(*o.series(c)) > 0
	case o.fallback == time.Duration(0):
		return *o.duration(c) != 0
	}
	return len(c.Retry.Pauses) == 0 || o.key != "retry.first" && o.key != "retry.most"
}

// fill sets the field to its default if it is zero.
func (o *relayOption) fill(c *relay.Config) {
	switch section, _ := o.section(); section {
	case "retry", "outage": // the other fields of the section decide about a default
		filled := relay.Config{Retry: c.Retry, Outage: c.Outage}.WithDefaults()
		c.Retry, c.Outage = filled.Retry, filled.Outage
		return
	}
	if o.duration != nil && *o.duration(c) == 0 {
		*o.duration(c), _ = o.fallback.(time.Duration)
	} else if o.number != nil && *o.number(c) == 0 {
		*o.number(c), _ = o.fallback.(int)
	}
}

// relayMistake is an error of package relay, in terms of the file.
type relayMistake struct {
	keys    []string // the keys that the message names, in order
	message string
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// checkRelay lets package relay check the settings, so that the rules exist only once.
func checkRelay(c relay.Config) []relayMistake {
	_, err := relay.New(noStore{}, discard.New(), c)
	var found []relayMistake
	for _, err := range flatten(err) {
		var m relayMistake
		text, section := strings.TrimPrefix(err.Error(), "relay: "), ""
		for _, name := range []string{"Retry", "Outage"} {
			if rest, ok := strings.CutPrefix(text, name+": "); ok {
				text, section = rest, name+"."
			}
		}
		m.message = goName.ReplaceAllStringFunc(text, func(name string) string {
			for _, o := range relayOptions {
				if o.field == section+name {
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

// noStore is a store for checks, which never open it.
type noStore struct{}

func (noStore) Open(context.Context, string, feeds.Member) (feeds.Feed, error) {
	return nil, postrider.ErrUnsupported
}

package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postrider/postrider/internal/process"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// The order policies of a feed.
const (
	// Strict holds back later messages of a key until the failed one is delivered or an operator decides.
	Strict = "strict"
	// Skip lets later messages of a key overtake a failed one.
	Skip = "skip"
)

// Config configures a [Relay]. The zero value is valid.
type Config struct {
	// Feed is the name of the feed that the relay serves. Defaults to "default".
	Feed string
	// Name is shown to operators as the member's name. Defaults to "host:pid".
	Name string

	// Create creates the feed, beginning at From, if it does not exist. Without it the relay refuses to start, because a
	// mistyped name would send the whole log again. The first feed of a log is always created. Defaults to false.
	Create bool
	// From is where a newly created feed begins. Defaults to the oldest message.
	From feeds.Origin
	// Beside names the other feeds of the process; they are created together with the first feed of a log. Defaults to none.
	Beside []string
	// Destination describes the destination in a few words, without secrets. The feed remembers it and refuses relays with a
	// different one. Defaults to none, which is accepted.
	Destination string
	// Force replaces the destination that the feed remembers. Defaults to false.
	Force bool

	// NoInspection skips the check of what confirmations are worth, which a relay runs if the publisher is a
	// [broker.Inspector]. Set it in a process whose relays share a publisher and that runs the check itself. Defaults to false.
	NoInspection bool

	// Lease is how long a relay owns a shard without renewing it: after a crash, others take over within this time. No Publish
	// lasts longer. Defaults to 10 s.
	Lease time.Duration
	// BalanceInterval is the time between two checks of the fair share. Defaults to 1 s.
	BalanceInterval time.Duration
	// SettleInterval is the minimum time between two checkpoints: a crash can repeat what was sent since the last one.
	// Defaults to 50 ms.
	SettleInterval time.Duration

	// BatchSize is the maximum number of messages in one Publish. Use fewer for a slow destination: what is not confirmed when
	// the lease expires is sent again. Defaults to 500.
	BatchSize int
	// ReadAhead is the maximum number of messages of one shard that are read but not settled. Defaults to 4000.
	ReadAhead int
	// Memory limits the bytes of messages in memory, for all shards together, to at most a quarter of the process's memory limit
	// (GOMEMLIMIT or the control group). A larger message passes alone. Defaults to 64 MiB.
	Memory int
	// PollMin is the time between two reads under load. At high rates it grows up to three times, so that each read returns
	// more; at low rates up to five times, so that few reads return nothing. Defaults to 5 ms.
	PollMin time.Duration
	// PollMax is the maximum time between two reads of an idle relay. The interval grows to 50 ms at once, and then to a 64th of
	// the idle time. Defaults to 250 ms.
	PollMax time.Duration

	// PublishTimeout limits one Publish, together with the rest of the lease. Defaults to 30 s.
	PublishTimeout time.Duration
	// Outage is the backoff during outages of the broker or the store. Such retries do not end, so it has no Attempts and no
	// MaxAge. A message that an outage affects while others succeed is retried after up to four times as long. Defaults to
	// 100 ms, doubling up to 2 s: a recovered destination is noticed within 5 s.
	Outage retry.Policy
	// Order decides what happens to later messages of a key while one fails: [Strict] or [Skip]. Defaults to Strict.
	Order string
	// Retry is the retry policy of a message that fails by itself, before it becomes a dead letter. Outages do not count.
	// MaxAge also ends retries that do not count, and starts when the message is deferred. Defaults to 5 attempts after 1 s,
	// 2 s, 4 s, up to 10 min, and no MaxAge.
	Retry retry.Policy

	// DrainTimeout is how long a stopping relay waits for messages in flight before it cancels them, and how long it then tries
	// to release its shards. It also limits how long a shard that moves to another relay waits for the store to defer failed
	// messages, which would otherwise be sent again. Defaults to 10 s.
	DrainTimeout time.Duration

	// Canary is the time between two canary messages, which prove that the pipeline works, if the store supports them. See
	// [feeds.CanaryType]. Defaults to 0: none.
	Canary time.Duration
	// MaintainInterval is the time between two runs of the store's housekeeping. Defaults to 1 min.
	MaintainInterval time.Duration
	// Logger logs outages, recoveries, lost shards and refused messages. Defaults to [slog.Default].
	Logger *slog.Logger
}

// WithDefaults returns c with defaults for all fields that are not set.
func (c Config) WithDefaults() Config {
	c.Feed = cmp.Or(c.Feed, "default")
	c.Name = cmp.Or(c.Name, process.Name())
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.BalanceInterval = cmp.Or(c.BalanceInterval, time.Second)
	c.SettleInterval = cmp.Or(c.SettleInterval, 50*time.Millisecond)
	c.BatchSize = cmp.Or(c.BatchSize, 500)
	c.ReadAhead = cmp.Or(c.ReadAhead, 4000)
	c.Memory = min(cmp.Or(c.Memory, 64<<20), mostMemory())
	c.PollMin = cmp.Or(c.PollMin, 5*time.Millisecond)
	c.PollMax = cmp.Or(c.PollMax, 250*time.Millisecond)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 30*time.Second)
	c.Outage = c.Outage.Or(retry.Policy{First: 100 * time.Millisecond, Most: 2 * time.Second})
	c.Order = cmp.Or(c.Order, Strict)
	c.Retry = c.Retry.Or(retry.Policy{First: time.Second, Most: 10 * time.Minute, Attempts: 5})
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 10*time.Second)
	c.MaintainInterval = cmp.Or(c.MaintainInterval, time.Minute)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns all errors of a configuration with defaults.
func (c Config) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"Lease", c.Lease},
		{"BalanceInterval", c.BalanceInterval},
		{"SettleInterval", c.SettleInterval},
		{"PollMin", c.PollMin},
		{"PollMax", c.PollMax},
		{"PublishTimeout", c.PublishTimeout},
		{"DrainTimeout", c.DrainTimeout},
		{"MaintainInterval", c.MaintainInterval},
		{"Canary", c.Canary},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("relay: %s is negative: %v", f.name, f.value))
		}
	}
	if c.BatchSize < 0 {
		errs = append(errs, fmt.Errorf("relay: BatchSize is negative: %d", c.BatchSize))
	}
	if c.ReadAhead < 0 {
		errs = append(errs, fmt.Errorf("relay: ReadAhead is negative: %d", c.ReadAhead))
	}
	if c.Memory < 0 {
		errs = append(errs, fmt.Errorf("relay: Memory is negative: %d", c.Memory))
	}
	if c.BatchSize > c.ReadAhead {
		errs = append(errs, fmt.Errorf("relay: BatchSize (%d) is larger than ReadAhead (%d): a batch could never fill",
			c.BatchSize, c.ReadAhead))
	}
	if c.PollMin > c.PollMax {
		errs = append(errs, fmt.Errorf("relay: PollMin (%v) is longer than PollMax (%v)", c.PollMin, c.PollMax))
	}
	for _, err := range parts(c.Outage.ValidateForever()) {
		errs = append(errs, fmt.Errorf("relay: Outage: %w", err))
	}
	for _, err := range parts(c.Retry.Validate()) {
		errs = append(errs, fmt.Errorf("relay: Retry: %w", err))
	}
	if c.Retry.Attempts == retry.Forever {
		errs = append(errs, errors.New("relay: Retry: Attempts has no limit: a message that is refused for good would block its key unseen"))
	}
	if c.Order != Strict && c.Order != Skip {
		errs = append(errs, fmt.Errorf("relay: Order is %q: want %q or %q", c.Order, Strict, Skip))
	}
	if c.SettleInterval > c.Lease/4 {
		errs = append(errs, fmt.Errorf("relay: SettleInterval (%v) is longer than a quarter of Lease (%v): "+
			"leases would not be renewed in time", c.SettleInterval, c.Lease))
	}
	if c.BalanceInterval > c.Lease {
		errs = append(errs, fmt.Errorf("relay: BalanceInterval (%v) is longer than Lease (%v): "+
			"other relays would take this one for dead", c.BalanceInterval, c.Lease))
	}
	return errors.Join(errs...)
}

// parts returns the errors that were joined in err.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // joined errors only, not wrapped ones
		return joined.Unwrap()
	}
	return nil
}

// Member returns how a relay with this configuration joins its feed.
func (c Config) Member() feeds.Member {
	return feeds.Member{
		Name: c.Name, Lease: c.Lease, Create: c.Create, From: c.From, Beside: c.Beside, Destination: c.Destination, Force: c.Force,
	}
}

// margin is the unused end of a lease: every Publish is planned to end that long before the lease
// expires.
func (c Config) margin() time.Duration { return c.Lease / 10 }

package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/process"
	"github.com/postrider/postrider/retry"
)

// The order policies of a feed.
const (
	// Strict holds back the later messages of a key while one of them fails, until an operator decides if need be.
	Strict = "strict"
	// Skip lets the later messages of a key overtake one that fails.
	Skip = "skip"
)

// Config tunes a [Relay]. The zero value works.
type Config struct {
	// Feed is the name of the feed that the relay serves. Defaults to "default".
	Feed string
	// Name is shown to operators as the member's name. Defaults to "host:pid".
	Name string

	// Create makes the relay create the feed if it does not exist, beginning at From: it would otherwise be refused, lest a
	// mistyped name sends the whole log again. The first feed of a log is always created. Defaults to false.
	Create bool
	// From is where a feed that is created begins. Defaults to the oldest message.
	From postrider.Origin
	// Beside names the other feeds that the process serves: they are created together with the first feed of a log. Defaults to none.
	Beside []string
	// Destination says in a few words where the relay sends to, without any secret. The feed remembers it, and a relay that
	// brings another one is refused. Defaults to none, which is accepted.
	Destination string
	// Force makes the feed remember Destination instead of another one. Defaults to false.
	Force bool

	// Lease is how long shards stay with a relay that the store does not hear from: the longest pause before others
	// take over after a crash. No Publish lasts longer. Defaults to 10 s.
	Lease time.Duration
	// BalanceInterval is the time between two checks of the relay's fair share. Defaults to 1 s.
	BalanceInterval time.Duration
	// SettleInterval is the least time between two records of progress: what a crash can cause to be sent again.
	// Defaults to 50 ms.
	SettleInterval time.Duration

	// BatchSize is the largest number of messages in one Publish. A slow destination wants fewer: what has not been
	// confirmed when the lease ends is sent again. Defaults to 500.
	BatchSize int
	// ReadAhead is the largest number of messages of one shard that are read but not confirmed, or confirmed behind one
	// that is not. Defaults to 4000.
	ReadAhead int
	// Memory is about how many bytes of messages the relay holds, in all shards together, but no more than a quarter of the
	// memory that the process may have (GOMEMLIMIT, or its control group's limit). A message that is larger passes alone.
	// Defaults to 64 MiB.
	Memory int
	// PollMin is the time between two reads while messages keep coming. When many come, up to three times as much passes,
	// so that each read brings more; when few come, up to five times, so that most reads bring any. Defaults to 5 ms.
	PollMin time.Duration
	// PollMax is the longest time between two reads of an idle relay. The interval grows to 50 ms at once, and then to a 64th of the
	// time that nothing has come. Defaults to 250 ms.
	PollMax time.Duration

	// PublishTimeout bounds one Publish, together with what is left of the lease. Defaults to 30 s.
	PublishTimeout time.Duration
	// Outage has the pauses after failures that are no message's fault, of the broker as of the store. They are repeated until
	// they are over, so it has no Attempts and no MaxAge. A message that is not to blame while others pass is tried again
	// after up to four times as long. Defaults to 100 ms, doubling up to 2 s: a recovered destination is noticed within 5 s.
	Outage retry.Policy
	// Order is what becomes of the later messages of a key while one of them fails: [Strict] or [Skip]. Defaults to Strict.
	Order string
	// Retry is how often a message is sent that fails by its own fault before it is a dead letter. What an outage does to it
	// is not counted. MaxAge ends also what is not counted while others pass, and counts from when the message was deferred.
	// Defaults to 5 attempts after 1 s, 2 s, 4 s, up to 10 min, and no MaxAge.
	Retry retry.Policy

	// DrainTimeout is how long a stopping relay waits for what is in flight before it cancels it, and how long it then
	// tries to release its shards. It also bounds how long a shard that goes to another relay waits for the store to defer
	// messages that failed while later ones were confirmed, which would be sent again. Defaults to 10 s.
	DrainTimeout time.Duration

	// Canary is the time between two canaries, messages that prove that others would arrive, if the store can send them. See
	// [postrider.CanaryType]. Defaults to 0, which means none.
	Canary time.Duration
	// MaintainInterval is the time between two rounds of the store's housekeeping. Defaults to 1 min.
	MaintainInterval time.Duration
	// Logger is told of outages, recoveries, lost shards and refused messages. Defaults to [slog.Default].
	Logger *slog.Logger
}

// WithDefaults returns the configuration that a relay would work with: c, and the defaults where c says nothing.
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

// validate reports everything that is wrong with a configuration whose defaults have been filled in.
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
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // as it was joined, not what it wraps
		return joined.Unwrap()
	}
	return nil
}

// Member is how a relay with this configuration introduces itself to its feed.
func (c Config) Member() postrider.Member {
	return postrider.Member{
		Name: c.Name, Lease: c.Lease, Create: c.Create, From: c.From, Beside: c.Beside, Destination: c.Destination, Force: c.Force,
	}
}

// margin is the part of a lease that is never used: the end of every Publish is planned for that much before its end.
func (c Config) margin() time.Duration { return c.Lease / 10 }

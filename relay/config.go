package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Config tunes a [Relay]. The zero value works.
type Config struct {
	// Feed is the name of the feed that the relay serves. Defaults to "default".
	Feed string
	// Name is shown to operators as the member's name. Defaults to "host:pid".
	Name string

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
	// that is not. While a message fails, the other keys of its shard go on until it is reached. Defaults to 4000.
	ReadAhead int
	// PollMin is the time between two reads while messages keep coming. When many come, up to three times as much passes,
	// so that each read brings more; when few come, up to five times, so that most reads bring any. Defaults to 5 ms.
	PollMin time.Duration
	// PollMax is the time between two reads of an idle relay; the interval grows from PollMin to it. Defaults to 50 ms.
	PollMax time.Duration

	// PublishTimeout bounds one Publish, together with what is left of the lease. Defaults to 30 s.
	PublishTimeout time.Duration
	// RetryMin is the pause after a first failure, of the broker as of the store. It doubles with each further failure,
	// and up to half of it is added at random. Defaults to 100 ms.
	RetryMin time.Duration
	// RetryMax is the longest pause between two attempts, before the random part. A message that may itself be to blame
	// for its failures pauses half as long again. Defaults to 2 s: a recovered destination is noticed within 5 s.
	RetryMax time.Duration
	// Order is what becomes of the later messages of a key while one of them fails: [Strict] or [Skip]. Defaults to Strict.
	Order string
	// MaxAttempts is how often a message is sent that fails by its own fault before it is a dead letter. What an outage
	// does to it is not counted. Defaults to 5.
	MaxAttempts int
	// BackoffBase is the pause of such a message after the first attempt. It doubles with each attempt, and up to half of
	// it is added at random. Defaults to 1 s.
	BackoffBase time.Duration
	// BackoffMax is the longest pause between two such attempts, before the random part. Defaults to 10 min.
	BackoffMax time.Duration
	// BackoffSeries are the pauses after the first attempt, the second, and so on, instead of BackoffBase and BackoffMax;
	// the last one is repeated. Defaults to none.
	BackoffSeries []time.Duration

	// DrainTimeout is how long a stopping relay waits for what is in flight before it cancels it, and how long it then
	// tries to release its shards. It also bounds how long a shard that goes to another relay waits for messages that
	// failed while later ones were confirmed, which would be sent again. Defaults to 10 s.
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
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.BalanceInterval = cmp.Or(c.BalanceInterval, time.Second)
	c.SettleInterval = cmp.Or(c.SettleInterval, 50*time.Millisecond)
	c.BatchSize = cmp.Or(c.BatchSize, 500)
	c.ReadAhead = cmp.Or(c.ReadAhead, 4000)
	c.PollMin = cmp.Or(c.PollMin, 5*time.Millisecond)
	c.PollMax = cmp.Or(c.PollMax, 50*time.Millisecond)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 30*time.Second)
	c.RetryMin = cmp.Or(c.RetryMin, 100*time.Millisecond)
	c.RetryMax = cmp.Or(c.RetryMax, 2*time.Second)
	c.Order = cmp.Or(c.Order, Strict)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, 5)
	if len(c.BackoffSeries) == 0 {
		c.BackoffBase = cmp.Or(c.BackoffBase, time.Second)
		c.BackoffMax = cmp.Or(c.BackoffMax, 10*time.Minute)
	}
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
		{"RetryMin", c.RetryMin},
		{"RetryMax", c.RetryMax},
		{"BackoffBase", c.BackoffBase},
		{"BackoffMax", c.BackoffMax},
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
	if c.BatchSize > c.ReadAhead {
		errs = append(errs, fmt.Errorf("relay: BatchSize (%d) is larger than ReadAhead (%d): a batch could never fill",
			c.BatchSize, c.ReadAhead))
	}
	if c.PollMin > c.PollMax {
		errs = append(errs, fmt.Errorf("relay: PollMin (%v) is longer than PollMax (%v)", c.PollMin, c.PollMax))
	}
	if c.RetryMin > c.RetryMax {
		errs = append(errs, fmt.Errorf("relay: RetryMin (%v) is longer than RetryMax (%v)", c.RetryMin, c.RetryMax))
	}
	if c.Order != Strict && c.Order != Skip {
		errs = append(errs, fmt.Errorf("relay: Order is %q: want %q or %q", c.Order, Strict, Skip))
	}
	if c.MaxAttempts < 0 {
		errs = append(errs, fmt.Errorf("relay: MaxAttempts is negative: %d", c.MaxAttempts))
	}
	if len(c.BackoffSeries) > 0 && c.BackoffBase+c.BackoffMax > 0 {
		errs = append(errs, fmt.Errorf("relay: BackoffSeries (%v) contradicts BackoffBase (%v) and BackoffMax (%v): want one or the other",
			c.BackoffSeries, c.BackoffBase, c.BackoffMax))
	} else if c.BackoffBase > c.BackoffMax {
		errs = append(errs, fmt.Errorf("relay: BackoffBase (%v) is longer than BackoffMax (%v)", c.BackoffBase, c.BackoffMax))
	}
	for _, d := range c.BackoffSeries {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("relay: BackoffSeries has %v: want longer pauses", d))
		}
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

// margin is the part of a lease that is never used: the end of every Publish is planned for that much before its end.
func (c Config) margin() time.Duration { return c.Lease / 10 }

package inbox

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

// Order decides what happens to later messages of a key while one is deferred.
type Order string

const (
	// Strict makes them wait until it is handled or an operator decides.
	Strict Order = "strict"
	// Skip handles them without waiting.
	Skip Order = "skip"
)

// Config configures an [Inbox]. The zero value is valid.
type Config struct {
	// Retry is the retry policy of messages whose handler fails. After the last attempt, or MaxAge
	// after it was deferred, a message becomes a dead letter. Attempts that fail with
	// [postrider.Unavailable] do not count. Defaults to 20 attempts with a backoff of 1 s, 2 s, 4
	// s, up to 1 min (about 14 minutes in all), and no MaxAge.
	Retry retry.Policy
	// Order decides what happens to later messages of a key while one is deferred. Defaults to
	// [Strict].
	Order Order
	// Redelivery is the longest time after which a message can arrive again: the broker's
	// retention, or the age of the oldest message that operators replay, whichever is longer. The
	// inbox does not open if its store remembers messages for less than that. Defaults to 24 h.
	Redelivery time.Duration
	// AcceptLate handles messages outside of the store's window, such as those scheduled far ahead.
	// Such a message may be handled twice if it is redelivered after a whole window. Defaults to
	// false: they become dead letters.
	AcceptLate bool
	// IgnoreUnknown acknowledges messages of a type that has no handler. Defaults to false: they
	// become dead letters.
	IgnoreUnknown bool
	// Timeout limits the run time of a handler by a deadline on its context. Defaults to 1 minute.
	Timeout time.Duration
	// Retriers is the number of deferred messages that are retried concurrently. Defaults to 4.
	Retriers int
	// Batch is the maximum number of messages passed to a batch handler. Defaults to 64.
	Batch int
	// Poll is how often the inbox asks the store for messages that other processes deferred and
	// that are due. It does not need to poll for its own. Defaults to 2 s.
	Poll time.Duration
	// Drain is how long handlers of retried messages may continue after the context of Run ends.
	// Defaults to 10 s.
	Drain time.Duration
	// Process names this process for operators. Defaults to the host name and the process ID.
	Process string
	// Observer observes every call of a handler, including retries. Defaults to none. Use it
	// instead of [postrider.Observe], which does not see failures that the inbox handles itself.
	Observer postrider.Observer
	// Middleware wraps every handler of single messages; the first element is the outermost.
	// Defaults to none. The inbox recovers panics and enforces Timeout without it.
	Middleware []postrider.Middleware
	// Codecs decode payloads for [On] and [OnBatch]. Keys are content types in lower case, without
	// parameters. Defaults to JSON for all.
	Codecs map[string]Codec
	// Logger logs failures. Defaults to [slog.Default].
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	wrong := c.Retry.Validate()
	c.Retry = c.Retry.Or(retry.Policy{First: time.Second, Most: time.Minute, Attempts: 20})
	c.Order = cmp.Or(c.Order, Strict)
	c.Redelivery = cmp.Or(c.Redelivery, 24*time.Hour)
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	c.Retriers = cmp.Or(c.Retriers, 4)
	c.Batch = cmp.Or(c.Batch, 64)
	c.Poll = cmp.Or(c.Poll, 2*time.Second)
	c.Drain = cmp.Or(c.Drain, 10*time.Second)
	c.Process = cmp.Or(c.Process, process.Name())
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	var errs []error
	check := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("inbox: "+format, args...))
		}
	}
	check(wrong != nil, "Retry: %w", wrong)
	check(c.Order != Strict && c.Order != Skip, "Order is %q: want %q or %q", c.Order, Strict, Skip)
	check(c.Redelivery < 0, "Redelivery is %s: want a positive time", c.Redelivery)
	check(c.Timeout < 0, "Timeout is %s: want a positive time", c.Timeout)
	check(c.Retriers < 0, "Retriers is %d: want a positive number", c.Retriers)
	check(c.Batch < 0, "Batch is %d: want a positive number", c.Batch)
	check(c.Poll < 0, "Poll is %s: want a positive time", c.Poll)
	check(len(c.Process) > 200, "Process has %d bytes: want at most 200", len(c.Process))
	check(c.Drain < 0, "Drain is %s: want a positive time", c.Drain)
	return c, errors.Join(errs...)
}

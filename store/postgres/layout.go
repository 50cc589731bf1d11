package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

// Layout configures what the first migration creates.
type Layout struct {
	// Shards is the number of parts into which a new feed divides its keys. One relay reads a shard
	// at a time. 1 to 1024. Defaults to 8.
	Shards int
	// Slots is the number of partitions in the ring, 3 to 128. Defaults to 8.
	Slots int
	// Period is how long producers write to one slot before they move to the next. Delivered
	// messages are kept for about Slots - 1 periods. A whole number of seconds. Defaults to 24
	// hours.
	Period time.Duration
	// DedupWindow is how long a dedup key is remembered. A whole number of seconds. Defaults to 7
	// days.
	DedupWindow time.Duration
	// InboxWindow is how long, at least, consumers remember which messages they have received. A
	// multiple of 7 seconds. Defaults to 7 days.
	InboxWindow time.Duration
}

func (l Layout) withDefaults() (Layout, error) {
	if l.Shards == 0 {
		l.Shards = 8
	}
	if l.Slots == 0 {
		l.Slots = 8
	}
	if l.Period == 0 {
		l.Period = 24 * time.Hour
	}
	if l.DedupWindow == 0 {
		l.DedupWindow = 7 * 24 * time.Hour
	}
	if l.InboxWindow == 0 {
		l.InboxWindow = 7 * 24 * time.Hour
	}
	var errs []error
	if l.Shards < 1 || l.Shards > 1024 {
		errs = append(errs, fmt.Errorf("postgres: Shards is %d: want 1 to 1024", l.Shards))
	}
	if l.Slots < 3 || l.Slots > 128 {
		errs = append(errs, fmt.Errorf("postgres: Slots is %d: want 3 to 128", l.Slots))
	}
	if l.Period < time.Second || l.Period%time.Second != 0 {
		errs = append(errs, fmt.Errorf("postgres: Period is %s: want a whole number of seconds", l.Period))
	}
	if l.DedupWindow < time.Second || l.DedupWindow%time.Second != 0 {
		errs = append(errs, fmt.Errorf("postgres: DedupWindow is %s: want a whole number of seconds", l.DedupWindow))
	}
	if l.InboxWindow < 7*time.Second || l.InboxWindow%(7*time.Second) != 0 {
		errs = append(errs, fmt.Errorf("postgres: InboxWindow is %s: want a multiple of 7 seconds", l.InboxWindow))
	}
	return l, errors.Join(errs...)
}

func (l Layout) in(sql string) string {
	return strings.NewReplacer(
		"@shards@", strconv.Itoa(l.Shards),
		"@slots@", strconv.Itoa(l.Slots),
		"@period@", strconv.Itoa(int(l.Period/time.Second)),
		"@dedup@", strconv.Itoa(int(l.DedupWindow/time.Second)),
		"@inbox_period@", strconv.Itoa(int(l.InboxWindow/(7*time.Second))),
	).Replace(sql)
}

// limits fills in the size limits of messages.
func limits(sql string) string {
	return strings.NewReplacer(
		"@max_text@", strconv.Itoa(postrider.MaxText),
		"@max_headers@", strconv.Itoa(postrider.MaxHeaders),
		"@max_payload@", strconv.Itoa(postrider.MaxPayload),
	).Replace(sql)
}

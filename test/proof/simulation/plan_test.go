package simulation_test

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/postrider/postrider/relay"
	policies "github.com/postrider/postrider/retry"
)

// plan is everything that a seed determines.
type plan struct {
	Shards, Keys, Relays int
	Names                int  // of destinations; the messages of a key go to all of them
	KeepsOrder           bool // of the broker's pipeline
	Recalls              bool // the broker can report what has arrived
	Config               relay.Config
	Transactions         []transaction
	Events               []event
	Store, Broker        trouble
	Chance               uint64 // seeds the faults of single calls
}

// transaction is a producer's transaction.
type transaction struct {
	After       time.Duration // since the previous one
	DeadLetters []draft
	Rollback    bool
}

// draft is a message.
type draft struct {
	Key      int // 0 means none: the message is unordered
	Kind     kind
	Delay    time.Duration // of DeliverAfter; 0 means none
	Priority int
}

type kind string

const (
	good     kind = "good"
	refused  kind = "refused"  // always rejected by the broker
	swallows kind = "swallows" // the broker never responds, and has not received it
	crasher  kind = "crasher"  // kills the process that sends it
)

// event is something that happens at a certain time.
type event struct {
	After time.Duration // since the previous one
	What  string
	Which int           // relay
	For   time.Duration // until it is over
	Hangs bool          // calls get no response, instead of an error
}

// Kinds of events.
const (
	kill         = "kill"          // a relay's process dies; another starts when For is over
	pause        = "pause"         // a relay's process is suspended
	stop         = "stop"          // a relay is stopped cleanly, and restarted when For is over
	join         = "join"          // an additional relay works for a while
	databaseDown = "database down" // for all
	brokerDown   = "broker down"   // for all
	nameDown     = "name down"     // the broker accepts nothing for one name; with Hangs, without a reason
	crash        = "crash"         // the database crashes: everything handed out is void
	rewind       = "rewind"        // an operator has a part of the log sent again
	retry        = "retry"         // an operator has dead letters sent again
)

// events are drawn from these.
var events = []string{
	stop, join, kill, pause, databaseDown, brokerDown, crash, retry,
	stop, join, kill, pause, databaseDown, brokerDown, crash, retry,
	stop, join, kill, pause, databaseDown, brokerDown, crash, rewind,
	nameDown, nameDown, nameDown,
}

// trouble has the failures per thousand calls.
type trouble struct {
	Fails   int // without an effect
	Unknown int // with its effect, but the response is lost
	Slow    int
	Hangs   int // no response until the caller gives up
	Late    int // has its effect after the caller has given up
	Refuses int // only by the broker: rejects it permanently
}

// plans draws plans. Unusual sizes and times find what others hide.
var plans = rapid.Custom(func(t *rapid.T) plan {
	lease := rapid.SampledFrom([]time.Duration{10 * time.Second, time.Second, 200 * time.Millisecond, 40 * time.Second}).Draw(t, "lease")
	of := func(d time.Duration, divisors ...int) time.Duration {
		return max(d/time.Duration(rapid.SampledFrom(divisors).Draw(t, "divisor")), time.Millisecond)
	}
	some := func(label string, n ...int) int { return rapid.SampledFrom(n).Draw(t, label) }
	p := plan{
		Shards:     some("shards", 1, 2, 4, 8),
		Keys:       some("keys", 1, 2, 5, 20),
		Relays:     some("relays", 1, 2, 3),
		KeepsOrder: rapid.Bool().Draw(t, "keeps order"),
		Chance:     rapid.Uint64().Draw(t, "chance"),
	}
	c := relay.Config{
		Lease:            lease,
		BalanceInterval:  of(lease, 10, 1, 3),
		SettleInterval:   of(lease, 200, 4, 20),
		BatchSize:        some("batch", 500, 1, 3, 10),
		PollMin:          of(lease, 100, 10),
		PublishTimeout:   3 * of(lease, 1, 3, 12),
		Outage:           policies.Policy{First: of(lease, 100, 10)},
		Order:            rapid.SampledFrom([]string{relay.Strict, relay.Strict, relay.Skip}).Draw(t, "order"),
		Retry:            policies.Policy{Attempts: some("attempts", 5, 1, 2), First: of(lease, 10, 1)},
		DrainTimeout:     of(lease, 1, 5),
		MaintainInterval: of(time.Minute, 1, 60),
		Logger:           slog.New(slog.DiscardHandler),
	}
	c.ReadAhead = c.BatchSize * some("ahead", 8, 1, 2)
	c.PollMax = c.PollMin * time.Duration(some("poll", 5, 1))
	c.Outage.Most = c.Outage.First * time.Duration(some("retry", 20, 1))
	c.Retry.Most = c.Retry.First * time.Duration(some("backoff", 10, 1))
	p.Config = c

	after := rapid.SampledFrom([]time.Duration{0, lease / 20, lease / 4, lease})
	deadLetters := rapid.Custom(func(t *rapid.T) draft {
		l := draft{Key: rapid.IntRange(0, p.Keys).Draw(t, "key"), Kind: good}
		switch rapid.IntRange(0, 39).Draw(t, "kind") {
		case 39:
			l.Kind = refused
		case 38:
			l.Kind = swallows
		case 37:
			l.Delay = lease * time.Duration(rapid.IntRange(0, 2).Draw(t, "delay"))
			l.Delay++
		case 36:
			l.Priority = rapid.IntRange(1, 3).Draw(t, "priority")
		case 35:
			if rapid.IntRange(0, 9).Draw(t, "crasher") == 9 {
				if l.Kind = crasher; c.Order == relay.Skip {
					l.Key = 0 // later messages overtake it, and the model expects that only of messages that the broker has rejected
				}
			}
		}
		return l
	})
	p.Transactions = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) transaction {
		return transaction{
			After:       after.Draw(t, "after"),
			DeadLetters: rapid.SliceOfN(deadLetters, 1, 6).Draw(t, "letters"),
			Rollback:    rapid.IntRange(0, 9).Draw(t, "rollback") == 9,
		}
	}), 1, 40).Draw(t, "transactions")

	p.Events = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		return event{
			After: after.Draw(t, "after"),
			What:  rapid.SampledFrom(events).Draw(t, "what"),
			Which: rapid.IntRange(0, p.Relays-1).Draw(t, "which"),
			For:   rapid.SampledFrom([]time.Duration{lease / 10, lease, lease * 5 / 2}).Draw(t, "for"),
			Hangs: rapid.Bool().Draw(t, "hangs"),
		}
	}), 0, 12).Draw(t, "events")

	rates := rapid.SampledFrom([]int{0, 0, 0, 10, 100, 300})
	draw := func(label string) trouble {
		return trouble{
			Fails:   rates.Draw(t, label+" fails"),
			Unknown: rates.Draw(t, label+" unknown"),
			Slow:    rates.Draw(t, label+" slow"),
			Hangs:   rates.Draw(t, label+" hangs") / 5,
			Late:    rates.Draw(t, label+" late") / 5,
			Refuses: rates.Draw(t, label+" refuses") / 5,
		}
	}
	p.Store, p.Broker = draw("store"), draw("broker")
	p.Names = some("names", 1, 2, 3)
	p.Recalls = rapid.Bool().Draw(t, "recalls")
	return p
})

// String describes the plan briefly.
func (p plan) String() string {
	var b strings.Builder
	c := p.Config
	fmt.Fprintf(&b, "shards %d, keys %d, names %d, relays %d, keeps order %v, recalls %v, lease %v, balance %v, settle %v, batch %d, ahead %d, poll %v-%v, "+
		"publish %v, retry %v-%v, %s, attempts %d, backoff %v-%v, drain %v\n", p.Shards, p.Keys, p.Names, p.Relays, p.KeepsOrder, p.Recalls, c.Lease,
		c.BalanceInterval, c.SettleInterval, c.BatchSize, c.ReadAhead, c.PollMin, c.PollMax, c.PublishTimeout, c.Outage.First, c.Outage.Most,
		c.Order, c.Retry.Attempts, c.Retry.First, c.Retry.Most, c.DrainTimeout)
	fmt.Fprintf(&b, "store  %+v\nbroker %+v\n", p.Store, p.Broker)
	for _, e := range p.Events {
		fmt.Fprintf(&b, "event  +%v %s, relay %d, for %v, hangs %v\n", e.After, e.What, e.Which, e.For, e.Hangs)
	}
	for _, tx := range p.Transactions {
		fmt.Fprintf(&b, "tx     +%v rollback %v %+v\n", tx.After, tx.Rollback, tx.DeadLetters)
	}
	return b.String()
}

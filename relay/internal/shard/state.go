package shard

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Config configures a [Machine]. Every field except the functions and the flags is required.
type Config struct {
	Shard      int
	KeepsOrder bool                            // the publisher keeps order: see broker.OrderKeeper
	NameOf     func(*postrider.Message) string // see broker.Namer
	Sends      func(*postrider.Message) bool   // see broker.Filter; nil if every message is sent
	Strict     bool                            // later messages of a key wait for one that fails
	Slice      bool                            // the shard is a slice of another one, which has the deferred messages of both
	Splits     bool                            // a tenant can be split off

	BatchSize int // maximum number of messages in a call
	CallBytes int // maximum number of bytes in a call, except for a single message
	ReadAhead int // maximum number of messages in the window
	Lease     time.Duration
	Timeout   time.Duration // of one call
	Retry     Retry
}

// Machine is the state of one shard.
type Machine struct {
	cfg       Config
	lease     lease
	inbox     []run // batches that have not entered the window
	window    window
	tenants   tenants
	memory    memory
	names     names
	suspects  suspects // in the window, by position
	inherited suspects // deferred, by sequence number in the log
	deferrals deferrals
	due       due
	pace      pace
	mark      Mark
	news      news
	stop      stop
	loaded    bool // the blocked keys are known
	failing   bool // the last call confirmed nothing
	sweeping  bool // the window may contain messages of held names

	Count Counts
}

// stop is the request to end.
type stop struct {
	given    bool
	deadline time.Time // give up avoiding repetitions at this time
}

// news collects events for the log.
type news struct {
	told     []Told
	troubled bool // an outage was reported and no recovery since
}

// Counts counts messages since the start of the machine.
type Counts struct{ Published, Failed, Refused, Retried, Deferred, Dead int64 }

// Mark is the end of the confirmed prefix: the first Done messages of Batch and everything before
// it. Version increases with each change.
type Mark struct {
	Batch   *feeds.Batch
	Done    int
	Version uint64
}

// Event is the kind of a [Told].
type Event int

// The kinds of events for the log.
const (
	Outage      Event = iota // nothing is confirmed
	Recovered                // the outage is over
	Refused                  // a message failed by itself and was deferred for the first time
	Died                     // a message became a dead letter
	CannotDefer              // calls of the store for deferred messages fail
	CanDefer                 // they succeed again
)

// Told is an event for the log.
type Told struct {
	Event    Event
	Message  *postrider.Message
	Attempts int
	Err      error
}

// Call is a call of the publisher.
type Call struct {
	Messages []postrider.Message
	// Attempts is the number of earlier attempts of each message; nil if all are 0.
	Attempts []int
	Deadline time.Time
	// Alone means that the message may crash the process: no other such call may be running. Start,
	// if not nil, must be recorded in the store first. If the answer is [TooManyStarts], the message must
	// not be sent.
	Alone bool
	Start *feeds.Start
	// Unsure is since when each message may have arrived; nil if none may.
	Unsure []time.Time
}

// TooManyStarts reports whether a message must not be sent, given the number of times that sending it was
// started, this time included.
func TooManyStarts(started int) bool { return started-1 >= maxStarts }

// Answer is the result of a call.
type Answer struct {
	Errs    []error // as Publish returns them
	Started int     // the result of recording Call.Start; 0 if there was none
	Err     error   // why nothing was sent, if recording the start failed
	Alone   bool    // as in the call

	// Unsure is since when each message may have arrived without an answer; nil if none may.
	Unsure []time.Time
}

// Actions are the actions to start, in addition to those in flight.
type Actions struct {
	Publish  *Call              // answered by Published
	Retry    *Call              // answered by Retried
	Defer    []feeds.Deferral   // answered by Deferred
	Conclude []feeds.Conclusion // answered by Concluded
	Split    string             // the tenant to split off when the machine has ended
	Ended    bool               // the machine has ended
	Wake     time.Time          // when to call Next again if there is no event before; zero for never
}

// Start describes a shard at the time when it was taken over.
type Start struct {
	Known     map[postrider.ID]bool // messages that are known to have arrived, even if the store has lost that after a crash
	Suspects  int                   // number of messages of the log to send alone
	Inherited int                   // number of deferred messages to send alone
}

// New returns the machine of a shard that was just taken.
func New(cfg Config, s Start) *Machine {
	return &Machine{
		cfg:       cfg,
		lease:     lease{length: cfg.Lease, timeout: cfg.Timeout},
		window:    newWindow(cfg.KeepsOrder),
		tenants:   tenants{enabled: cfg.Splits && !cfg.Slice},
		memory:    memory{arrived: s.Known},
		names:     names{of: cfg.NameOf},
		suspects:  suspects{left: s.Suspects},
		inherited: suspects{left: s.Inherited},
		deferrals: deferrals{limit: cfg.BatchSize, blocked: make(map[uint64]bool), sent: make(map[postrider.ID]bool)},
		pace:      pace{limit: cfg.BatchSize},
	}
}

// advance advances the mark to the end of the confirmed prefix.
func (m *Machine) advance() {
	if n, batch, done := m.window.advance(); n > 0 {
		m.mark = Mark{batch, done, m.mark.Version + 1}
	}
}

func (m *Machine) tell(t Told) { m.news.told = append(m.news.told, t) }

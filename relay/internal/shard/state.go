package shard

import (
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Config is what a [Machine] goes by. Every field is needed but NameOf and the flags.
type Config struct {
	Shard      int
	KeepsOrder bool                            // the publisher does: see broker.OrderKeeper
	NameOf     func(*postrider.Message) string // see broker.Namer
	Strict     bool                            // later messages of a key wait for one that fails
	Slice      bool                            // it is a part of another shard, which has the deferred messages of both
	Splits     bool                            // a tenant can be read apart

	BatchSize int // the most messages in a call,
	CallBytes int // and the most bytes, but for a single message
	ReadAhead int // the most messages in the window
	Lease     time.Duration
	Timeout   time.Duration // of a call
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
	suspects  suspects // with the messages of the window, by position,
	inherited suspects // and with deferred ones, by their place in the log
	deferrals deferrals
	due       due
	pace      pace
	mark      Mark
	news      news
	stop      stop
	loaded    bool // it is known which keys are blocked
	failing   bool // the last call confirmed nothing
	sweeping  bool // the window may have messages of held names

	Count Counts
}

// stop is the order to end.
type stop struct {
	given    bool
	patience time.Time // until when the machine tries not to leave anything behind that would be repeated
}

// news is what people want to know.
type news struct {
	told     []Told
	troubled bool // the last of them was an outage
}

// Counts is what the machine has seen, since it began.
type Counts struct{ Published, Failed, Refused, Retried, Deferred, Dead int64 }

// Mark says how far the shard is confirmed: the first Done messages of Batch and all before it. Version grows with it.
type Mark struct {
	Batch   *feeds.Batch
	Done    int
	Version uint64
}

// Event is something that people want to know.
type Event int

// What a [Told] can be about.
const (
	Outage      Event = iota // nothing is confirmed
	Recovered                // what has failed does not any more
	Refused                  // a message was deferred for the first time, by its own fault
	Died                     // a message is a dead letter
	CannotDefer              // the store fails with deferred messages
	CanDefer                 // it does not any more
)

// Told is news for the log.
type Told struct {
	Event    Event
	Message  *postrider.Message
	Attempts int
	Err      error
}

// Call is a call of the publisher.
type Call struct {
	Messages []postrider.Message
	// Attempts is, for each message, how often it was tried before; nil means never.
	Attempts []int
	Deadline time.Time
	// Alone means that the message may kill the process: no other such one is to be under way. Start, if there is one, is to be
	// noted before it is sent, and unless the answer is [Deadly], it is.
	Alone bool
	Start *feeds.Start
}

// Deadly reports whether a message is not to be sent, by how many have begun it.
func Deadly(started int) bool { return started-1 >= deadlyStarts }

// Answer is how a call has ended.
type Answer struct {
	Errs    []error // as Publish returns them
	Started int     // what the store says to Call.Start; 0 if it was not asked
	Err     error   // why nothing was sent, if the store did not answer
	Alone   bool    // as in the call
}

// Actions is what is to be done next, beside what is under way.
type Actions struct {
	Publish  *Call              // answered by Published
	Retry    *Call              // answered by Retried
	Defer    []feeds.Deferral   // answered by Deferred
	Conclude []feeds.Conclusion // answered by Concluded
	Split    string             // the tenant that is to be read apart when the machine has ended
	Ended    bool               // nothing more is to be done
	Wake     time.Time          // when to ask again, if nothing happens before; zero: never
}

// Start says what a shard was like when it was taken.
type Start struct {
	Known     map[postrider.ID]bool // messages that have arrived, though the store may have forgotten it
	Suspects  int                   // how many messages of the log are to be sent alone,
	Inherited int                   // and how many deferred ones
}

// New returns the machine of a shard that has just been taken.
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
		deferrals: deferrals{limit: cfg.BatchSize, blocked: make(map[uint64]bool)},
		pace:      pace{limit: cfg.BatchSize},
	}
}

// advance moves the confirmed prefix as far as it goes.
func (m *Machine) advance() {
	if n, batch, done := m.window.advance(); n > 0 {
		m.mark = Mark{batch, done, m.mark.Version + 1}
	}
}

func (m *Machine) tell(t Told) { m.news.told = append(m.news.told, t) }

package record

import (
	"slices"
	"time"
)

// Message identifies one message of the workload. Numbers are dense for each destination and key:
// 1, 2, 3 … in commit order.
type Message struct {
	Destination string
	Key         string
	Seq         int64
	ID          string
}

// Intent is a message whose transaction has committed.
type Intent struct {
	Message
	Sum    uint64 // of payload and headers: see Sum
	Poison bool   // the destination must reject it

	// Unnumbered messages were written before their number was assigned, so they do not contain it.
	// Their receipts and effects have 0, and are matched by ID.
	Unnumbered bool
	// Unordered messages have no ordering key: they may arrive in any order.
	Unordered bool
	Tenant    string

	At time.Time
}

// Receipt is one entry of a destination. Partition and offset identify it: an entry that is read
// twice is still one receipt.
//
// Offsets ascend within a partition. If a broker's positions are not numbers, the collector converts
// them to numbers in the same order (a Redis entry 1700000000000-3 becomes 1700000000000<<20 + 3); an
// HTTP receiver counts requests.
type Receipt struct {
	Message
	Partition int
	Offset    int64
	Sum       uint64
	At        time.Time // when it reached the destination if that is known, otherwise when the collector saw it
}

// Effect is what a consumer did for a message, in the transaction of its inbox.
type Effect struct {
	Message
	N        int64  // ascending in the order in which effects were written
	Consumer string // the name in the inbox, not that of a process
}

// States of messages that were not delivered.
const (
	StateDead      = "dead"
	StateDiscarded = "discarded"
	StatePending   = "pending"
)

// Dead is a message that was not delivered, according to the product's own tables at the end.
type Dead struct {
	ID    string
	State string // StateDead, StateDiscarded, StatePending, or another word of the product
	Actor string // who discarded it, according to the audit log
}

// Foreign is a message of another sender that a destination has confirmed.
type Foreign struct {
	N           int64
	Destination string
	Form        string // what is unusual about it
	Ends        int64  // how often a consumer has handled it, or made it a dead letter
}

// Operation is a client's call that had to take effect exactly once, however often it was sent.
type Operation struct {
	Kind   string
	Client string
	N      int64
	Count  int64 // how often it took effect
	Acked  bool  // the caller got confirmation
}

// Lease is a row of the relays' ledger as it was seen at some time. The same row may be seen
// repeatedly.
type Lease struct {
	Feed     string
	Shard    int
	N        int64
	Member   string // empty: the shard has no owner
	Released bool
	At       time.Time
	Until    time.Time
}

// What a fault touches. Any other word in Event.Touches is the name of a destination.
const (
	Database = "database"
	Relay    = "relay"
	Producer = "producer"
	Consumer = "consumer"
)

// Phase is a step in the life of a fault.
type Phase string

// The phases of a fault. A note belongs to no phase, and its fault may be 0.
const (
	Begin     Phase = "begin"
	Heal      Phase = "heal"
	Recovered Phase = "recovered"
	Named     Phase = "named" // an operator could read the cause
	Note      Phase = "note"
)

// Event is a line of the timeline. The begin event of a fault has its properties (Touches and what
// follows).
type Event struct {
	At     time.Time `json:"at"`
	Fault  int       `json:"fault,omitempty"` // numbers of faults begin at 1
	Kind   string    `json:"kind,omitempty"`
	Target string    `json:"target,omitempty"`
	Phase  Phase     `json:"phase"`
	Detail string    `json:"detail,omitempty"`
	// Seconds are, of a begin, how long it took; of a heal, how long the fault lasted; of a recovery,
	// how long after the heal it came; and of a name, how long after the begin had ended.
	Seconds float64 `json:"seconds,omitempty"`

	Touches []string `json:"touches,omitempty"` // Database, Relay, Producer, Consumer, or names of destinations
	Zombie  bool     `json:"zombie,omitempty"`  // a relay may resume after its lease has expired
	Tenant  string   `json:"tenant,omitempty"`  // floods the target
	Clean   bool     `json:"clean,omitempty"`   // relays stop cleanly: they must cause no duplicates
	Again   int64    `json:"again,omitempty"`   // messages that an operator asks to come again, at the destinations in Touches
	Refuses string   `json:"refuses,omitempty"` // the destination that accepts nothing meanwhile, so that status must name it
}

// Touch reports whether the fault of this event touches any of the given things.
func (e Event) Touch(things ...string) bool {
	return slices.ContainsFunc(things, func(thing string) bool { return slices.Contains(e.Touches, thing) })
}

// Sample is the state at one moment. Values that could not be queried (the database is down) are
// nil.
type Sample struct {
	At        time.Time       `json:"at"`
	Processes []Process       `json:"processes,omitempty"`
	Database  *DatabaseSample `json:"database,omitempty"`
	Backlog   *Backlog        `json:"backlog,omitempty"`
	Waiting   *Waiting        `json:"waiting,omitempty"`
}

// Process is a process of a run at one moment. Processes are compared by role: restarted ones have
// another PID. A value that could not be read is 0.
type Process struct {
	Name       string `json:"name"` // relay2
	Role       string `json:"role"` // relay
	PID        int    `json:"pid"`
	RSS        int64  `json:"rss"` // bytes
	Goroutines int    `json:"goroutines,omitempty"`
	Files      int    `json:"files,omitempty"` // open files
}

// DatabaseSample is the state of the database and of our sessions.
type DatabaseSample struct {
	Deadlocks   int64   `json:"deadlocks"`    // as counted by the server since its statistics began
	IdleSeconds float64 `json:"idle_seconds"` // the longest time that a session of a relay or consumer has been idle in a transaction
	OldestOpen  float64 `json:"oldest_open"`  // seconds; our oldest open transaction
	LockWaits   int     `json:"lock_waits"`   // producers' sessions that have waited more than 100 ms for a lock that a relay holds
}

// Waiting is what keeps single messages and shards from progress.
type Waiting struct {
	// Silent describes deferred messages that have waited for more than a minute although nothing
	// says why; at most 20.
	Silent []string `json:"silent,omitempty"`
	// Dead are the dead letters that were found since the sample before.
	Dead []DeadLetter `json:"dead,omitempty"`
	// Shards are those with a message that has been pending for more than 10 s.
	Shards []Shard `json:"shards,omitempty"`
}

// DeadLetter is a message that the product has given up, until an operator handles it.
type DeadLetter struct {
	ID       string    `json:"id"`
	Feed     string    `json:"feed"` // inbox/NAME: a consumer gave it up
	Poison   bool      `json:"poison,omitempty"`
	Attempts int       `json:"attempts"`
	Tried    time.Time `json:"tried,omitzero"` // the last attempt
	Error    string    `json:"error,omitempty"`
}

// Shard is a shard of a feed that has something to send.
type Shard struct {
	Feed     string `json:"feed"`
	Number   int    `json:"number"`
	Position string `json:"position"` // changes when messages are settled
}

// Backlog is what is committed and not delivered, as counted by the product, without messages that
// wait for an operator.
type Backlog struct {
	Messages      int64   `json:"messages"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

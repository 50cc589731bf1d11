package admin

import (
	"context"
	"time"
)

// Gauges returns figures cheaply enough to be read every few seconds: the cost does not grow with
// the log, the backlog or the number of dead letters.
type Gauges interface {
	// Gauges returns the state of all feeds and consumers.
	Gauges(ctx context.Context) (*Standing, error)
	// Health reports the health of the database. Expensive: call it at most every 30 s.
	Health(ctx context.Context) (*Health, error)
}

// Standing is the state of all feeds and consumers of a store at one moment.
type Standing struct {
	At       time.Time      `json:"at"`       // by the store's clock
	Enqueued int64          `json:"enqueued"` // increases by at least one with each message; its rate of change is the message rate
	Feeds    []FeedStanding `json:"feeds"`    // sorted by name
	// Consumers are the consumers that have an inbox in this database, sorted by name.
	Consumers []ConsumerStanding `json:"consumers"`
	Foreign   bool               `json:"foreign,omitempty"` // the checkpoints belong to another database, so relays pause
}

// FeedStanding is the state of one feed.
type FeedStanding struct {
	Name     string        `json:"name"`
	Paused   bool          `json:"paused"`
	Members  []Member      `json:"members"` // relays, sorted by name
	Shards   []Shard       `json:"shards"`  // sorted by shard
	Pending  Estimate      `json:"pending"` // messages not delivered, without the deferred ones
	Oldest   time.Time     `json:"oldest,omitzero"`
	Deferred DeferredCount `json:"deferred"`
	Settled  time.Time     `json:"settled,omitzero"` // when a relay last recorded progress
	Canary   time.Time     `json:"canary,omitzero"`  // as in [Feed]
}

// Estimate is a number that is exact up to a limit and an estimate beyond it.
type Estimate struct {
	N     int64 `json:"n"`
	Exact bool  `json:"exact"`
}

// DeferredCount is the number of deferred messages by status. Each number stops at 10,000; then Exact
// is false.
type DeferredCount struct {
	Scheduled int  `json:"scheduled"`
	Retry     int  `json:"retry"`
	Held      int  `json:"held"`
	Waiting   int  `json:"waiting"`
	Dead      int  `json:"dead"`
	Parked    int  `json:"parked"`
	Blocked   int  `json:"blocked"` // keys
	Exact     bool `json:"exact"`
}

// Member is a relay process that serves a feed.
type Member struct {
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Since  time.Time `json:"since"` // first heartbeat that is still known
	Heard  time.Time `json:"heard"` // last heartbeat
	Until  time.Time `json:"until"` // when it counts as gone without another heartbeat
	Shards []int     `json:"shards"`
}

// Shard is a shard of a feed, or the part of a shard that belongs to one tenant and is read
// separately.
type Shard struct {
	Shard   int       `json:"shard"`
	Tenant  string    `json:"tenant,omitempty"` // the tenant, if it is a part of shard Base
	Base    int       `json:"base"`             // the same as Shard, or the shard that it is a part of
	Holder  string    `json:"holder,omitempty"` // name of the relay that owns it
	Until   time.Time `json:"until,omitzero"`   // end of the lease
	At      time.Time `json:"at"`               // when it was last settled or its lease renewed
	Last    int64     `json:"last"`             // position in the log up to which it has come
	Pending Estimate  `json:"pending"`
	Oldest  time.Time `json:"oldest,omitzero"` // enqueue time of the first undelivered message
	Crashes int       `json:"crashes,omitempty"`
}

// ConsumerStanding is the state of a consumer.
type ConsumerStanding struct {
	Name     string        `json:"name"`
	Created  time.Time     `json:"created"`
	Last     time.Time     `json:"last,omitzero"` // when it last recorded a message
	Deferred DeferredCount `json:"deferred"`
	// Heard is the last heartbeat of a process that works for the consumer, and Process is its
	// name. Both are zero if there was never a heartbeat; then Gone and Silence report nothing.
	Heard   time.Time `json:"heard,omitzero"`
	Process string    `json:"process,omitempty"`
}

const (
	// goneAfter is how long a working process may go without a heartbeat: several times its
	// interval.
	goneAfter = time.Minute
	// retiredAfter is how long a consumer must be silent to be considered retired.
	retiredAfter = 7 * 24 * time.Hour
)

// Silence returns the time since the last heartbeat of the consumer. Known is false if there was
// never a heartbeat, or none for a week.
func (c *ConsumerStanding) Silence(now time.Time) (silent time.Duration, known bool) {
	silent = max(now.Sub(c.Heard), 0)
	return silent, !c.Heard.IsZero() && silent <= retiredAfter
}

// Gone returns how long no process has worked for the consumer. It is 0 if one does, and for a
// consumer that is unknown or retired; see Silence.
func (c *ConsumerStanding) Gone(now time.Time) time.Duration {
	if silent, known := c.Silence(now); known && silent > goneAfter {
		return silent
	}
	return 0
}

// Health reports the health of a database.
type Health struct {
	At       time.Time   `json:"at"`
	Server   string      `json:"server"`   // such as "PostgreSQL 18.1"
	Schema   string      `json:"schema"`   // schema that contains the log
	Version  int         `json:"version"`  // version of the schema
	Size     int64       `json:"size"`     // bytes of the whole database
	Tables   []TableSize `json:"tables"`   // tables of the schema, with partitions added to their parents, largest first
	Capacity Capacity    `json:"capacity"` // remaining capacity of the log
	// OldestTransaction is the age of the oldest open transaction of the database, and
	// OldestSnapshot the age of the oldest snapshot, which keeps vacuum from removing dead rows; 0
	// if there is none.
	OldestTransaction time.Duration `json:"oldest_transaction"`
	OldestSnapshot    time.Duration `json:"oldest_snapshot"`
	Connections       int           `json:"connections"`
	MaxConnections    int           `json:"max_connections"`
	Slots             []Slot        `json:"slots"`            // replication slots of the server
	DedupKeys         int64         `json:"dedup_keys"`       // estimated
	IdempotencyKeys   int64         `json:"idempotency_keys"` // estimated
}

// TableSize is the size of a table.
type TableSize struct {
	Name       string    `json:"name"`
	Bytes      int64     `json:"bytes"` // with indexes and TOAST
	Rows       int64     `json:"rows"`  // estimated
	DeadRows   int64     `json:"dead_rows"`
	LastVacuum time.Time `json:"last_vacuum,omitzero"`
}

// Capacity describes the ring of slots that the log is written to.
type Capacity struct {
	Slots  int           `json:"slots"`
	Used   int           `json:"used"`   // slots that contain messages
	Period time.Duration `json:"period"` // time that one slot covers
}

// Slot is a replication slot. Its reader prevents the server from removing WAL.
type Slot struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
	Bytes  int64  `json:"bytes"` // bytes of WAL that it retains
}

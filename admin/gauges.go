package admin

import (
	"context"
	"time"
)

// Gauges are figures that can be asked for every few seconds: their cost does not grow with the log, the backlog or the
// number of dead letters.
type Gauges interface {
	// Gauges returns how the feeds stand.
	Gauges(ctx context.Context) (*Standing, error)
	// Vitals reports the health of the database. Expensive: call it at most every 30 s.
	Vitals(ctx context.Context) (*Vitals, error)
}

// Standing is how all feeds of a store stand at one moment.
type Standing struct {
	At       time.Time      `json:"at"`       // by the store's clock
	Enqueued int64          `json:"enqueued"` // a number that grows by at least one with each message; its growth is the rate
	Feeds    []FeedStanding `json:"feeds"`    // by name
	// Consumers are those that have an inbox here, by name.
	Consumers []ConsumerStanding `json:"consumers"`
	Foreign   bool               `json:"foreign,omitempty"` // the ledger belongs to another database: relays pause
}

// FeedStanding is how one feed stands.
type FeedStanding struct {
	Name    string     `json:"name"`
	Paused  bool       `json:"paused"`
	Members []Member   `json:"members"` // relays, by name
	Lanes   []Lane     `json:"lanes"`   // by shard
	Pending Estimate   `json:"pending"` // messages not delivered, without those deferred
	Oldest  time.Time  `json:"oldest,omitzero"`
	Aside   AsideCount `json:"aside"`
	Settled time.Time  `json:"settled,omitzero"` // when a relay last recorded anything
	Canary  time.Time  `json:"canary,omitzero"`  // as in [Feed]
}

// Estimate is a number that is exact up to a limit, and a guess beyond.
type Estimate struct {
	N     int64 `json:"n"`
	Exact bool  `json:"exact"`
}

// AsideCount is how many messages are deferred, each counted up to a limit of 10,000: Exact is false where one was reached.
type AsideCount struct {
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
	Since  time.Time `json:"since"` // first heard from, as far as is remembered
	Heard  time.Time `json:"heard"` // last heard from
	Until  time.Time `json:"until"` // when it counts as gone if it is not heard from
	Shards []int     `json:"shards"`
}

// Lane is a shard of a feed, or the part of one tenant that is read apart.
type Lane struct {
	Shard   int       `json:"shard"`
	Tenant  string    `json:"tenant,omitempty"` // whose messages it is about, if it is a part of Base
	Base    int       `json:"base"`             // the shard itself, or the one that it is a part of
	Holder  string    `json:"holder,omitempty"` // name of the relay
	Until   time.Time `json:"until,omitzero"`   // of the lease
	At      time.Time `json:"at"`               // when it was last settled or renewed
	Last    int64     `json:"last"`             // how far it has come, in numbers of the log
	Pending Estimate  `json:"pending"`
	Oldest  time.Time `json:"oldest,omitzero"` // when the first one that is not delivered was enqueued
	Crashes int       `json:"crashes,omitempty"`
}

// ConsumerStanding is how a consumer stands.
type ConsumerStanding struct {
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Last    time.Time  `json:"last,omitzero"` // when it last recorded a message
	Aside   AsideCount `json:"aside"`
	// Heard is when a process last said that it works for the consumer, and Process what it calls itself. Zero if none ever has:
	// then nothing is known.
	Heard   time.Time `json:"heard,omitzero"`
	Process string    `json:"process,omitempty"`
}

const (
	// goneAfter is for how long a process that works may be silent: several times the interval of its heartbeat.
	goneAfter = time.Minute
	// retiredAfter is after what silence nobody expects the consumer back.
	retiredAfter = 7 * 24 * time.Hour
)

// Silence returns how long ago a process last said that it works for the consumer. Known is false if nobody expects one: none has
// ever been heard of, or none for a week.
func (c *ConsumerStanding) Silence(now time.Time) (silent time.Duration, known bool) {
	silent = max(now.Sub(c.Heard), 0)
	return silent, !c.Heard.IsZero() && silent <= retiredAfter
}

// Gone returns for how long no process has worked for the consumer; 0 if one does, or if nobody expects one.
func (c *ConsumerStanding) Gone(now time.Time) time.Duration {
	if silent, known := c.Silence(now); known && silent > goneAfter {
		return silent
	}
	return 0
}

// Vitals reports the health of a database.
type Vitals struct {
	At       time.Time   `json:"at"`
	Server   string      `json:"server"`   // such as "PostgreSQL 18.1"
	Schema   string      `json:"schema"`   // where the log lies
	Version  int         `json:"version"`  // of the schema
	Size     int64       `json:"size"`     // bytes of the whole database
	Tables   []TableSize `json:"tables"`   // of the schema, partitions together, largest first
	Capacity Capacity    `json:"capacity"` // what the log may still take
	// OldestTransaction is how long the oldest open transaction of the database has been open, and OldestSnapshot the one
	// that keeps vacuum from cleaning up; 0 if there is none.
	OldestTransaction time.Duration `json:"oldest_transaction"`
	OldestSnapshot    time.Duration `json:"oldest_snapshot"`
	Connections       int           `json:"connections"`
	MaxConnections    int           `json:"max_connections"`
	Slots             []Slot        `json:"slots"`            // replication slots of the server
	DedupKeys         int64         `json:"dedup_keys"`       // estimated
	IdempotencyKeys   int64         `json:"idempotency_keys"` // estimated
}

// TableSize is what a table takes.
type TableSize struct {
	Name       string    `json:"name"`
	Bytes      int64     `json:"bytes"` // with indexes and TOAST
	Rows       int64     `json:"rows"`  // estimated
	DeadRows   int64     `json:"dead_rows"`
	LastVacuum time.Time `json:"last_vacuum,omitzero"`
}

// Capacity is the ring that the log is written into.
type Capacity struct {
	Slots  int           `json:"slots"`
	Used   int           `json:"used"`   // slots that hold messages
	Period time.Duration `json:"period"` // that one slot covers
}

// Slot is a replication slot: whoever reads it holds back what the server may drop.
type Slot struct {
	Name   string `json:"name"`
	Active bool   `json:"active"`
	Bytes  int64  `json:"bytes"` // that it holds back
}

// Package plan estimates, from measured constants, the resources for a message rate: relays,
// shards, connections, WAL, disk, processor time and memory. It also computes which limit is
// reached first, and what a billion messages cost.
package plan

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Inputs are the parameters of a plan. Where zero is not a valid value, it means that the plan
// chooses, or uses the measured value.
type Inputs struct {
	Rate         float64       `json:"rate"`         // messages a second, in all databases together
	Databases    int           `json:"databases"`    // that they are spread over
	Servers      int           `json:"servers"`      // that these databases are on
	MessageSize  int64         `json:"message_size"` // bytes of payload
	Destinations int           `json:"destinations"` // each a feed of its own
	Retention    time.Duration `json:"-"`            // how long delivered messages are kept at least
	Broker       string        `json:"broker"`       // broker whose client relays use; empty: the most expensive one that was measured
	Load         float64       `json:"load"`         // usable part of a machine, 0 to 1

	Relays int `json:"relays,omitempty"` // processes; 0: as many as needed
	Zones  int `json:"zones"`            // that relays are spread over; one may be lost
	Shards int `json:"shards,omitempty"` // of each log; 0: as many as needed

	ServerCores    int     `json:"server_cores,omitempty"`    // of a database server; 0: as the measured one
	RelayCores     float64 `json:"relay_cores"`               // that one relay process may use
	MaxConnections int     `json:"max_connections,omitempty"` // of a database server
	WALLimit       int64   `json:"wal_limit,omitempty"`       // bytes a second of a server; 0: the highest that was measured
	DiskLimit      int64   `json:"disk_limit,omitempty"`      // bytes of a server; 0: no limit
	Partitions     int     `json:"partitions,omitempty"`      // at the broker; 0: no limit
	PartitionLimit float64 `json:"partition_limit,omitempty"` // messages a second of one partition

	CPUHourPrice float64 `json:"cpu_hour_price,omitempty"` // of one core; 0: unknown
	WALPrice     float64 `json:"wal_gb_price,omitempty"`   // of a GB of WAL that is shipped or archived
	DiskPrice    float64 `json:"disk_gb_price,omitempty"`  // of a GB of disk for a month
}

// largest is the limit of PostgreSQL for one value.
const largest = 1 << 30

// Validate reports all invalid inputs, including contradictions between them.
func (in *Inputs) Validate() error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("plan: "+format, args...))
		}
	}
	wrong(!(in.Rate > 0) || math.IsInf(in.Rate, 0), "--rate is %v: want messages a second, more than 0", in.Rate)
	wrong(in.MessageSize < 0 || in.MessageSize >= largest, "--message-size is %d bytes: want 0 to 1 GiB, which is what PostgreSQL can hold", in.MessageSize)
	wrong(in.Retention < minute, "--retention is %s: want at least %s", in.Retention, minute)
	wrong(!(in.Load > 0) || in.Load > 1, "--load is %g%%: want more than 0%% and at most 100%%", in.Load*100)
	wrong(!(in.RelayCores > 0), "--relay-cores is %g: want more than 0", in.RelayCores)
	for _, f := range []struct {
		flag         string
		value, least float64
	}{
		{"databases", float64(in.Databases), 1}, {"servers", float64(in.Servers), 1}, {"destinations", float64(in.Destinations), 1},
		{"zones", float64(in.Zones), 1}, {"relays", float64(in.Relays), 0}, {"shards", float64(in.Shards), 0},
		{"server-cores", float64(in.ServerCores), 0}, {"max-connections", float64(in.MaxConnections), 0}, {"wal-limit", float64(in.WALLimit), 0},
		{"disk-limit", float64(in.DiskLimit), 0}, {"partitions", float64(in.Partitions), 0}, {"partition-limit", in.PartitionLimit, 0},
		{"cpu-hour-price", in.CPUHourPrice, 0}, {"wal-gb-price", in.WALPrice, 0}, {"disk-gb-price", in.DiskPrice, 0},
	} {
		wrong(!(f.value >= f.least), "--%s is %g: want at least %g", f.flag, f.value, f.least)
	}
	wrong(in.Shards > maxShards, "--shards is %d: want at most %d", in.Shards, maxShards)
	return errors.Join(append(errs, in.contradictions()...)...)
}

const (
	minute    = time.Minute
	maxShards = 1024
)

// contradictions returns an error for each pair of inputs that contradict each other.
func (in *Inputs) contradictions() (errs []error) {
	both := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("plan: "+format, args...))
		}
	}
	both(in.Servers > in.Databases && in.Databases > 0,
		"--servers %d and --databases %d contradict each other: a database is on one server", in.Servers, in.Databases)
	both(in.Relays > 0 && in.Zones > in.Relays,
		"--zones %d and --relays %d contradict each other: a zone without a relay is none", in.Zones, in.Relays)
	shards := in.Shards * max(in.Databases, 1) * max(in.Destinations, 1)
	both(in.Shards > 0 && in.Relays > shards,
		"--relays %d and --shards %d contradict each other: a shard is served by one relay, and there are %d in all databases and feeds",
		in.Relays, in.Shards, shards)
	both(in.Partitions > 0 && in.PartitionLimit == 0,
		"--partitions %d says nothing without --partition-limit: how many messages a second one of them takes", in.Partitions)
	both(in.PartitionLimit > 0 && in.Partitions == 0,
		"--partition-limit %g says nothing without --partitions: how many there are", in.PartitionLimit)
	return errs
}

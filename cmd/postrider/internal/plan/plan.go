package plan

import (
	"fmt"
	"math"
	"time"
)

// Plan is the estimate for the inputs. Rates are totals unless they say otherwise.
type Plan struct {
	Inputs Inputs `json:"inputs"`
	Broker string `json:"broker"`

	Relays  int           `json:"relays"`           // processes
	Groups  int           `json:"groups"`           // of relays, each with databases of its own
	Sharing int           `json:"relays_per_group"` // relays that share the feeds of a database
	Needed  int           `json:"needed_per_group"` // of them, needed; the rest is spare
	Shards  int           `json:"shards"`           // of each log
	Slots   int           `json:"slots"`
	Period  time.Duration `json:"-"`

	Connections int `json:"connections"`              // of all relays to one server
	PerDatabase int `json:"connections_per_database"` // of one relay
	Budget      int `json:"connections_setting"`      // "connections:" of the relays' file; 0: the default

	WAL         float64 `json:"wal_bytes_per_second"`
	WALMessages float64 `json:"wal_bytes_per_message"` // without the producers' own rows
	Disk        float64 `json:"log_bytes"`
	DiskMessage float64 `json:"log_bytes_per_message"`

	ServerCores  float64 `json:"server_cores"`         // of all database servers, with the producers' own transactions
	MessageCores float64 `json:"message_server_cores"` // of them, what messages and relays have added
	PollingCores float64 `json:"polling_server_cores"` // of them, the polling of relays without messages
	RelayCores   float64 `json:"relay_cores"`
	Statements   float64 `json:"statements_per_second"` // of relays
	IdleShare    float64 `json:"idle_statements_per_second"`
	Memory       float64 `json:"relay_memory_bytes"`      // of one relay that keeps up
	MemoryMost   float64 `json:"relay_memory_most_bytes"` // of one relay whose destination is down: with a full read-ahead

	Ceilings []Ceiling `json:"ceilings"`        // nearest first
	MostRate float64   `json:"rate_to_ceiling"` // the rate at which the first one is reached
	Cost     Cost      `json:"cost_per_billion"`
	Beyond   []string  `json:"beyond_measured,omitempty"` // figures that are extrapolated
}

const (
	slots     = 8    // of the ring
	perFeed   = 4    // connections of a relay
	perBase   = 2    // minimum for each database
	readAhead = 4000 // maximum number of messages of a shard that a relay holds
	maxShare  = 64   // maximum number of relays that share one feed
)

// Compute returns a plan for valid inputs.
func (m *Model) Compute(in Inputs) Plan {
	p := m.layOut(in)
	p.Ceilings = m.ceilings(&p)
	p.MostRate = m.mostRate(in)
	if each := in.Rate / float64(in.Databases); each > m.producers.end() {
		p.Beyond = append(p.Beyond, fmt.Sprintf("%s messages/s in one database: %s were measured", number(each), number(m.producers.end())))
	}
	if size := float64(in.MessageSize); size > m.wal.end() {
		p.Beyond = append(p.Beyond, fmt.Sprintf("messages of %s: %s were measured", bytes(size), bytes(m.wal.end())))
	}
	return p
}

// layOut returns a plan without the ceilings.
func (m *Model) layOut(in Inputs) Plan {
	p := Plan{Inputs: in, Broker: m.broker, Slots: slots}
	p.Period = time.Duration(math.Ceil(in.Retention.Seconds()/(slots-2))) * time.Second
	m.staff(&p)
	p.Shards = in.Shards
	if p.Shards == 0 {
		p.Shards = shardsFor(p.Sharing)
	}
	m.count(&p)
	m.price(&p)
	return p
}

// shardsFor returns the number of shards, a power of two: eight, or at least twice the number of
// relays that share them.
func shardsFor(relays int) int {
	shards := 8
	for relays > 8 && shards < 2*relays {
		shards *= 2
	}
	return shards
}

// count computes everything that follows from the number of relays.
func (m *Model) count(p *Plan) {
	in := &p.Inputs
	databases, feeds, sharing := float64(in.Databases), float64(in.Destinations), float64(p.Sharing)
	each := in.Rate / databases // messages a second in one database
	memberships := databases * feeds * sharing
	size := float64(in.MessageSize)

	perServer := (in.Databases + in.Servers - 1) / in.Servers
	served := math.Ceil(databases / float64(p.Groups))
	usual := perFeed * in.Destinations
	p.PerDatabase = min(usual, max(perBase, int(in.Load*float64(in.connectionLimit()))/(perServer*p.Sharing)))
	p.Connections = perServer * p.Sharing * p.PerDatabase
	if p.PerDatabase < usual {
		p.Budget = p.PerDatabase * int(served)
	}

	p.WALMessages = max(0, m.wal.at(size)-m.businessWAL)
	p.WAL = in.Rate*m.wal.at(size) + databases*feeds*m.ledger.at(each)
	p.DiskMessage = m.disk.at(size)
	p.Disk = in.Rate * (slots - 1) * p.Period.Seconds() * p.DiskMessage

	own := atLeast(databases*m.producers.at(each)+in.Rate*m.extra(m.serverBySize, in.MessageSize), 0)
	readers := atLeast(memberships*m.readers.at(each/sharing)+in.Rate*feeds*m.extra(m.readerBySize, in.MessageSize), memberships*m.readers.at(0))
	p.ServerCores = own + readers
	p.PollingCores = memberships * m.readers.at(0)
	p.MessageCores = max(0, own-in.Rate*m.business) + readers
	p.RelayCores = memberships * m.perMembership(in, each/sharing)
	p.Statements = memberships * m.statements.at(each/sharing)
	p.IdleShare = memberships * m.statements.at(0)

	p.Memory = m.memory + max(0, served*feeds-1)*m.feedMemory
	p.MemoryMost = p.Memory + served*feeds*math.Ceil(float64(p.Shards)/sharing)*readAhead*size
}

// perMembership returns the cores that one relay needs for one feed of one database at a rate.
func (m *Model) perMembership(in *Inputs, rate float64) float64 {
	return atLeast(m.relays.at(rate)+rate*(m.client+m.extra(m.relayBySize, in.MessageSize)), m.relays.at(0))
}

func atLeast(value, least float64) float64 { return max(value, least) }

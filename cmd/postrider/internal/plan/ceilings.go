package plan

import (
	"cmp"
	"math"
	"slices"
)

// Basis is the source of a figure.
type Basis string

// The bases.
const (
	Given    Basis = "given"    // by the user
	Measured Basis = "measured" // by bench scale
	Computed Basis = "computed" // from what was measured
	Assumed  Basis = "assumed"  // by this program, without better information
)

// Ceiling is a limit of a resource.
type Ceiling struct {
	Name  string  `json:"name"`
	Need  float64 `json:"need"`
	Have  float64 `json:"have"`
	Unit  string  `json:"unit"`
	Basis Basis   `json:"basis"` // of Have
	// Share is the part of the usable resource that is needed: at 1 the ceiling is reached.
	Share float64 `json:"share"`
	Then  string  `json:"then"` // what to do when it is reached
}

// ceilings compares the needs of the plan with the limits, nearest ceiling first.
func (m *Model) ceilings(p *Plan) []Ceiling {
	in := &p.Inputs
	servers, databases := float64(in.Servers), float64(in.Databases)
	var all []Ceiling
	// add compares a need with a limit; most is the usable part of it.
	add := func(name string, need, given, otherwise float64, basis Basis, unit string, most float64, then string) {
		have := given
		if given > 0 {
			basis = Given
		} else {
			have = otherwise
		}
		if have > 0 {
			all = append(all, Ceiling{name, need, have, unit, basis, need / have / most, then})
		}
	}
	uneven := math.Ceil(databases/servers) / (databases / servers) // one server may have one database more than another
	moreCores := "more cores, or more servers and databases: tenants, or kinds of aggregates, move to a database of their own"
	if p.PollingCores > p.MessageCores/2 {
		moreCores = "longer poll_max and poll_min: most of it is relays that look for messages; otherwise " + moreCores
	}
	add("cores of a database server", p.ServerCores/servers*uneven, float64(in.ServerCores), float64(m.set.Machine.Cores), Assumed, "cores", in.Load,
		moreCores)
	add("WAL of a database server", p.WAL/servers*uneven, float64(in.WALLimit), m.walSeen, Assumed, "bytes/s", in.Load,
		"a disk of its own for the WAL, wal_compression, smaller messages (a reference instead of the body), or more servers")
	add("one log's sequence", in.Rate/databases, 0, m.set.Sequence, Measured, "numbers/s", in.Load,
		"more databases, or a second schema with a log of its own")
	add("one relay's cores", m.busy(in, p.Groups, p.Needed), in.RelayCores, 0, Given, "cores", in.Load,
		"more relays, more groups of them, or longer poll_max and poll_min where most databases have little to do")
	add("what one relay reads", m.reads(in, p.Needed)*m.reading, 0, m.reading, Measured, "messages/s", in.Load,
		"more relays and shards")
	add("relays of one feed", float64(p.Sharing), float64(in.Shards), 0, Given, "shards", 1,
		"more shards, which only a new log has")
	add("connections to a database server", float64(p.Connections), float64(in.MaxConnections), defaultConnections, Assumed, "connections", 1,
		"a pooler in transaction mode between, fewer databases to a server, or a larger max_connections")
	add("disk of a database server", p.Disk/servers*uneven, float64(in.DiskLimit), 0, Given, "bytes", 1,
		"a shorter retention, or more servers")
	if in.Partitions > 0 {
		add("the broker's partitions", in.Rate/float64(in.Partitions), in.PartitionLimit, 0, Given, "messages/s", in.Load,
			"more partitions; a key stays in one of them, so that one hot key is not helped")
	}
	slices.SortStableFunc(all, func(a, b Ceiling) int { return cmp.Compare(b.Share, a.Share) })
	return all
}

// defaultConnections is PostgreSQL's default of max_connections.
const defaultConnections = 100

func (in *Inputs) connectionLimit() int { return cmp.Or(in.MaxConnections, defaultConnections) }

// mostRate returns the rate at which the first ceiling is reached, with all other inputs unchanged.
func (m *Model) mostRate(in Inputs) float64 {
	return m.search(in, func(all []Ceiling) bool { return all[0].Share <= 1 })
}

// RateOf returns the rate at which the named ceiling is reached, or 0 if that is at no realistic
// rate.
func (m *Model) RateOf(in Inputs, name string) float64 {
	rate := m.search(in, func(all []Ceiling) bool {
		return !slices.ContainsFunc(all, func(c Ceiling) bool { return c.Name == name && c.Share > 1 })
	})
	if rate >= unthinkable {
		return 0
	}
	return rate
}

// unthinkable is the upper bound of a search.
const unthinkable = 1e9

// search returns the highest rate whose ceilings fit.
func (m *Model) search(in Inputs, fit func([]Ceiling) bool) float64 {
	fits := func(rate float64) bool {
		in.Rate = rate
		p := m.layOut(in)
		return fit(m.ceilings(&p))
	}
	low, high := 0.0, 1.0
	for fits(high) {
		if low, high = high, high*2; high > unthinkable {
			return unthinkable
		}
	}
	for range 50 {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

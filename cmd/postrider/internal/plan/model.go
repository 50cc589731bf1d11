package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// Model is the cost of messages, derived from the constants.
type Model struct {
	set    *scale.Set
	base   scale.Cell
	broker string

	// The cost of one database by its rate, for messages of the base size.
	producers curve // cores of the server, for the producers' transactions and its background processes
	// The cost of one relay by its rate, for one feed of one database.
	readers    curve // cores of the server
	relays     curve // cores of the relay
	statements curve // a second
	ledger     curve // bytes of WAL a second

	// The cost of one message by its size.
	serverBySize curve // seconds of the server
	relayBySize  curve // seconds of a relay
	readerBySize curve // seconds of the server, for relays
	wal          curve // bytes, without relays
	disk         curve // bytes

	client      float64 // additional seconds of a relay per message with the broker's client
	business    float64 // seconds of the server for a transaction without a message
	businessWAL float64
	walSeen     float64 // the highest WAL rate of any phase, in bytes a second
	reading     float64 // messages a second that one relay has read
	memory      float64 // bytes of a relay with one feed
	feedMemory  float64 // and of each further feed
}

// NewModel returns a model for the constants. An empty broker means the most expensive one that was
// measured.
func NewModel(set *scale.Set, broker string) (*Model, error) {
	base, ok := set.Base()
	if !ok || len(base.Relayed) == 0 || len(base.Bare) == 0 {
		return nil, errors.New("plan: the constants have no cell \"base\": want the output of postrider bench scale --json")
	}
	m := &Model{set: set, base: base}
	m.byRate()
	m.bySize()
	m.business = scale.Median(set.Business, scale.PerCommitted(scale.ServerCPU))
	m.businessWAL = scale.Median(set.Business, scale.PerCommitted(scale.WAL))
	for _, c := range set.Cells {
		for _, p := range slices.Concat(c.Bare, c.Relayed) {
			m.walSeen = max(m.walSeen, scale.PerSecond(scale.WAL)(p))
		}
	}
	for _, c := range set.In(scale.Drain) {
		m.reading = scale.Median(c.Relayed, scale.Phase.PublishedPerSecond)
	}
	m.remember()
	return m, m.choose(broker)
}

// byRate reads the cells that differ in their rate: idle, steady rates, full load and, for relays
// only, a backlog.
func (m *Model) byRate() {
	cells := append(m.set.In(scale.Rate), m.base)
	idle := m.set.In(scale.Idle)
	if i := slices.IndexFunc(idle, func(c scale.Cell) bool { return c.Databases == 1 }); i >= 0 {
		cells = append(cells, idle[i])
	}
	own := func(p scale.Phase) float64 { return p.CPU.Producers + p.CPU.Rest }
	bareWAL := scale.Median(m.base.Bare, scale.PerCommitted(scale.WAL))
	var producers, readers, relays, statements, ledger []point
	add := func(to *[]point, c scale.Cell, x float64, figure func(scale.Phase) float64) {
		*to = append(*to, point{x, scale.Median(c.Relayed, scale.PerSecond(figure))})
	}
	for _, c := range cells {
		x := scale.Median(c.Relayed, scale.Phase.PerSecond)
		add(&producers, c, x, own)
		add(&readers, c, x, scale.ReaderCPU)
		add(&relays, c, x, scale.RelayCPU)
		add(&statements, c, x, scale.Statements)
		add(&ledger, c, x, func(p scale.Phase) float64 { return float64(p.WAL) - bareWAL*float64(p.Messages) })
	}
	for _, c := range m.set.In(scale.Drain) {
		x := scale.Median(c.Relayed, scale.Phase.PublishedPerSecond)
		if x <= scale.Median(m.base.Relayed, scale.Phase.PerSecond) {
			continue // the backlog was too short to be measured
		}
		add(&readers, c, x, scale.ReaderCPU)
		add(&relays, c, x, scale.RelayCPU)
		add(&statements, c, x, scale.Statements)
		add(&ledger, c, x, scale.WAL)
	}
	m.producers, m.readers, m.relays = newCurve(producers), newCurve(readers), newCurve(relays)
	m.statements, m.ledger = newCurve(statements), newCurve(ledger)
}

// bySize reads the cells that differ in the size of messages.
func (m *Model) bySize() {
	var server, reader, relay, wal, disk []point
	for _, c := range append(m.set.In(scale.Payload), m.base) {
		x := float64(c.Payload)
		cost := func(phases []scale.Phase, figure func(scale.Phase) float64) point {
			return point{x, scale.Median(phases, scale.PerCommitted(figure))}
		}
		server = append(server, cost(c.Relayed, func(p scale.Phase) float64 { return p.CPU.Producers + p.CPU.Rest }))
		reader = append(reader, cost(c.Relayed, scale.ReaderCPU))
		relay = append(relay, cost(c.Relayed, scale.RelayCPU))
		wal = append(wal, cost(c.Bare, scale.WAL))
		disk = append(disk, point{x, c.Disk})
	}
	m.serverBySize, m.readerBySize, m.relayBySize = newCurve(server), newCurve(reader), newCurve(relay)
	m.wal, m.disk = newCurve(wal), newCurve(disk)
}

// extra returns the additional cost of a message of the size, compared with one of the base size.
func (m *Model) extra(c curve, size int64) float64 {
	return c.at(float64(size)) - c.at(float64(m.base.Payload))
}

// remember reads how the memory of a relay grows with its feeds.
func (m *Model) remember() {
	memory := func(c scale.Cell) float64 {
		return scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayMemory) })
	}
	m.memory = memory(m.base)
	idle := m.set.In(scale.Idle)
	if len(idle) < 2 {
		return
	}
	byFeeds := func(a, b scale.Cell) int { return a.Databases*a.Feeds - b.Databases*b.Feeds }
	few, many := slices.MinFunc(idle, byFeeds), slices.MaxFunc(idle, byFeeds)
	if n := many.Databases*many.Feeds - few.Databases*few.Feeds; n > 0 {
		m.feedMemory = max(0, (memory(many)-memory(few))/float64(n))
	}
}

// choose sets the cost of a broker's client.
func (m *Model) choose(broker string) error {
	alone := scale.Median(m.base.Relayed, scale.PerPublished(scale.RelayCPU))
	names := []string{m.base.To}
	m.broker = m.base.To
	for _, c := range m.set.In(scale.Broker) {
		names = append(names, c.To)
		client := max(0, scale.Median(c.Relayed, scale.PerPublished(scale.RelayCPU))-alone)
		if c.To == broker || broker == "" && client >= m.client {
			m.broker, m.client = c.To, client
		}
	}
	if broker != "" && m.broker != broker {
		return fmt.Errorf("plan: --broker is %q, and the constants know %q: measure it with postrider bench scale --broker", broker, names)
	}
	return nil
}

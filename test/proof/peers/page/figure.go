package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
)

// figure is one value of one kind of cell.
type figure struct {
	name   string // for readers
	work   string
	broker string // empty: any
	value  func(*result.Cell) float64
	long   bool // of a transaction that was open for many minutes
	less   bool // less is better
	show   func(float64) string
}

// ages is the number of seconds after which a transaction counts as open for many minutes.
const ages = 300

// of returns the figure of a peer over the repetitions.
func (d *document) of(peer string, f figure) result.Spread {
	return d.run.Over(func(c *result.Cell) (float64, bool) {
		return f.value(c), c.Peer == peer && c.Work == f.work && !c.Stock && (f.broker == "" || c.Broker == f.broker) && (c.Held >= ages) == f.long
	})
}

// Values of cells.
func delivered(c *result.Cell) float64   { return c.DeliveredPerSecond }
func committed(c *result.Cell) float64   { return c.CommittedPerSecond }
func p50(c *result.Cell) float64         { return c.P50 }
func p99(c *result.Cell) float64         { return c.P99 }
func relayCPU(c *result.Cell) float64    { return c.RelayCPU / float64(c.Delivered) * 1e6 }
func databaseCPU(c *result.Cell) float64 { return c.DatabaseCPU / float64(c.Delivered) * 1e6 }
func relayMB(c *result.Cell) float64     { return float64(c.RelayMemory) / (1 << 20) }
func sessionsMB(c *result.Cell) float64  { return float64(c.DatabaseMemory) / (1 << 20) }
func walBytes(c *result.Cell) float64    { return float64(c.WAL) / float64(c.Delivered) }
func inversions(c *result.Cell) float64  { return float64(c.Inversions) }
func lost(c *result.Cell) float64        { return float64(c.Lost) }
func twice(c *result.Cell) float64       { return float64(c.Duplicates) }
func phantoms(c *result.Cell) float64    { return float64(c.Phantoms) }
func messages(c *result.Cell) float64    { return float64(c.Committed) }

// hours converts the seconds for a million messages, summed over all parts, to hours for a billion.
func hours(parts ...func(*result.Cell) float64) func(*result.Cell) float64 {
	return func(c *result.Cell) (sum float64) {
		for _, seconds := range parts {
			sum += seconds(c) * 1000 / 3600
		}
		return sum
	}
}

// document builds the generated part of the page.
type document struct {
	run   *result.Run
	plots string
	text  strings.Builder
}

func (d *document) write(format string, args ...any) { fmt.Fprintf(&d.text, format, args...) }

// peers returns the peers with cells, in the order of the tables.
func (d *document) peers() (names []string) {
	for _, p := range peer.All() {
		if slices.ContainsFunc(d.run.Cells, func(c result.Cell) bool { return c.Peer == p.Name() && !c.Stock }) {
			names = append(names, p.Name())
		}
	}
	return names
}

// brokers returns the brokers with cells, in alphabetical order.
func (d *document) brokers() (names []string) {
	for _, c := range d.run.Cells {
		if c.Broker != "" && !slices.Contains(names, c.Broker) {
			names = append(names, c.Broker)
		}
	}
	slices.Sort(names)
	return names
}

// main returns the broker of the trials that are not run on all of them.
func (d *document) main() string {
	for _, c := range d.run.Cells {
		if c.Work == result.HeldLatency || c.Work == result.Order {
			return c.Broker
		}
	}
	return d.brokers()[0]
}

// proper maps brokers to the spelling of their names.
var proper = map[string]string{"kafka": "Kafka", "nats": "NATS", "rabbitmq": "RabbitMQ"}

// table writes one row per peer, with a column for each figure.
func (d *document) table(columns []figure) {
	d.write("| |")
	for _, c := range columns {
		d.write(" %s |", c.name)
	}
	d.write("\n|---|%s\n", strings.Repeat("---|", len(columns)))
	for _, p := range d.peers() {
		d.write("| %s |", strong(p))
		for _, c := range columns {
			d.write(" %s |", spread(d.of(p, c), c.show))
		}
		d.write("\n")
	}
	d.write("\n")
}

// strong highlights our own row.
func strong(peer string) string {
	if peer == "postrider" {
		return "**" + peer + "**"
	}
	return peer
}

// spread formats the median and the range of the repetitions.
func spread(s result.Spread, show func(float64) string) string {
	switch {
	case s.N == 0:
		return ""
	case s.N == 1 || show(s.Min) == show(s.Max):
		return show(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", show(s.Median), show(s.Min), show(s.Max))
}

// whole formats a number with thousands separators.
func whole(v float64) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// millis formats milliseconds with the significant digits.
func millis(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return whole(v)
	}
}

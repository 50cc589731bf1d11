package page

import (
	"fmt"
	"sort"
	"strings"

	"github.com/postrider/postrider/test/proof/peers/result"
)

func (d *document) machine() {
	if len(d.run.Machines) == 0 {
		return
	}
	m := d.run.Machines[0]
	settings := make([]string, 0, len(m.Server))
	for name, value := range m.Server {
		settings = append(settings, fmt.Sprintf("`%s = %s`", name, value))
	}
	sort.Strings(settings)
	repetitions := 0
	for _, c := range d.run.Cells {
		repetitions = max(repetitions, c.Repetition)
	}
	d.write("Measured on %s, commit `%s`: %d cores (%s) that servers, producers, receiver and relay share, %d GB, Linux %s, "+
		"PostgreSQL %s (%s), %s. %s; figures are medians, with the least and the greatest in parentheses.\n\n",
		m.At.Format("2 January 2006"), m.Commit, m.CPUs, m.CPU, (m.MemoryMB+512)/1024, m.Kernel, m.PostgreSQL, strings.Join(settings, ", "), m.Go,
		plural(repetitions, "repetition"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// each returns a figure for every broker.
func (d *document) each(f figure) (columns []figure) {
	for _, b := range d.brokers() {
		g := f
		g.broker, g.name = b, strings.TrimSpace(f.name+" "+proper[b])
		columns = append(columns, g)
	}
	return columns
}

func (d *document) picture(file, alt string) { d.write("![%s](%s/%s)\n\n", alt, d.plots, file) }

func (d *document) rates() {
	d.write("### Full speed\n\n16 producers commit as fast as they can, each transaction with a business row and a message, while the relay carries. " +
		"Messages a second that arrive at the consumer:\n\n")
	d.picture("sustained.svg", "Messages a second that arrive while producers commit at full speed, by peer and broker")
	d.table(d.each(figure{work: result.Sustained, value: delivered, show: whole}))
	bare := d.run.Over(func(c *result.Cell) (float64, bool) { return c.CommittedPerSecond, c.Work == result.Bare })
	d.write("What producers commit meanwhile, messages a second. Without any outbox, the business row alone, they commit %s. "+
		"*No relay* is the same enqueuing with nobody reading. Where producers commit more than arrives above, a backlog grows.\n\n", spread(bare, whole))
	d.table(append([]figure{{name: "no relay", work: result.Alone, value: committed, show: whole}},
		d.each(figure{work: result.Sustained, value: committed, show: whole})...))
	d.write("### Backlog\n\nProducers are gone, and a relay starts. Messages a second from the first arrival to the last, or to the limit of the run:\n\n")
	d.picture("drain.svg", "Messages a second of a backlog, by peer and broker")
	d.table(d.each(figure{work: result.Drain, value: delivered, show: whole}))
}

func (d *document) latencies() {
	d.write("### From commit to the consumer\n\nAt a steady rate (1,000 messages a second in the full run), from the return of COMMIT to the arrival, milliseconds, p50 and p99:\n\n")
	d.picture("latency.svg", "Milliseconds from commit to arrival, p99 and p50, by peer and broker")
	var columns []figure
	for _, b := range d.brokers() {
		columns = append(columns,
			figure{name: proper[b] + " p50", broker: b, work: result.Latency, value: p50, show: millis},
			figure{name: "p99", broker: b, work: result.Latency, value: p99, show: millis})
	}
	d.table(columns)
	d.stock()
}

// stock shows the peers with their default settings, if that was measured.
func (d *document) stock() {
	var rows []string
	for _, p := range d.run.Peers {
		if !p.Stock {
			continue
		}
		over := func(value func(*result.Cell) float64) result.Spread {
			return d.run.Over(func(c *result.Cell) (float64, bool) {
				return value(c), c.Stock && c.Peer == p.Name && c.Work == result.Latency
			})
		}
		if s := over(p50); s.N > 0 {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", strong(p.Name), spread(s, millis), spread(over(p99), millis)))
		}
	}
	if len(rows) > 0 {
		d.write("The same on %s when nobody changes any setting of the peers:\n\n| | p50 | p99 |\n|---|---|---|\n%s\n", proper[d.main()], strings.Join(rows, ""))
	}
}

// held shows the trials with an old transaction: those of the usual run, and those in which it was
// open for many minutes.
func (d *document) held() {
	for _, long := range []bool{false, true} {
		age := d.age(long)
		if age.N == 0 {
			continue
		}
		b := d.main()
		if !long {
			d.write("### Beside an old open transaction\n\nSomebody has a transaction open in the same database, for %s seconds in the end, while 1,000 messages a second go to %s; "+
				"then producers go to full speed. Where nothing arrives any more, p50 and p99 are the time that messages had waited when the trial ended.\n\n",
				whole(age.Median), proper[b])
		} else {
			d.write("The same with a transaction that was open for %s seconds (%s):\n\n", whole(age.Median), plural(age.N/len(d.peers()), "repetition"))
		}
		d.picture(heldFile(long), "Messages a second without and with an old open transaction")
		d.table([]figure{
			{name: "p50 without", broker: b, work: result.Latency, value: p50, show: millis},
			{name: "p50 with", broker: b, work: result.HeldLatency, value: p50, show: millis, long: long},
			{name: "p99 without", broker: b, work: result.Latency, value: p99, show: millis},
			{name: "p99 with", broker: b, work: result.HeldLatency, value: p99, show: millis, long: long},
			{name: "arriving/s without", broker: b, work: result.Sustained, value: delivered, show: whole},
			{name: "arriving/s with", broker: b, work: result.HeldSustained, value: delivered, show: whole, long: long},
		})
	}
}

// age returns how old the transaction was at the end.
func (d *document) age(long bool) result.Spread {
	return d.run.Over(func(c *result.Cell) (float64, bool) {
		return c.Held, c.Work == result.HeldSustained && (c.Held >= ages) == long
	})
}

func heldFile(long bool) string {
	if long {
		return "held-long.svg"
	}
	return "held.svg"
}

func (d *document) order() {
	d.write("### Order and losses\n\n32 writers of 64 keys: each locks the key's row, counts it up and enqueues; some have got their transaction ID long before, some are slow, " +
		"every tenth rolls back. *Inverted* arrived after a later message of its key. Postrider ran with two relay processes, the others with the workers of the table below.\n\n")
	d.table([]figure{
		{name: "messages", work: result.Order, value: messages, show: whole},
		{name: "inverted", work: result.Order, value: inversions, show: whole},
		{name: "lost", work: result.Order, value: lost, show: whole},
		{name: "twice", work: result.Order, value: twice, show: whole},
		{name: "of rolled back transactions", work: result.Order, value: phantoms, show: whole},
	})
}

func (d *document) cost() {
	b := d.main()
	d.write("### What it costs\n\nOf the trials with %s. Processor seconds for a million messages: of the relay's process, and of the database server without its work for producers, "+
		"while a backlog is delivered and at 1,000 messages a second. Memory: the peak of the relay's process, and what the sessions of the relay take in the database server. "+
		"WAL: what a delivered message adds to that of its producer.\n\n", proper[b])
	d.picture("cost.svg", "Processor seconds for a million messages of a backlog, relay and database")
	d.table([]figure{
		{name: "relay, backlog", broker: b, work: result.Drain, value: relayCPU, show: whole},
		{name: "database, backlog", broker: b, work: result.Drain, value: databaseCPU, show: whole},
		{name: "relay, 1,000/s", broker: b, work: result.Latency, value: relayCPU, show: whole},
		{name: "database, 1,000/s", broker: b, work: result.Latency, value: databaseCPU, show: whole},
		{name: "relay, MB", broker: b, work: result.Drain, value: relayMB, show: whole},
		{name: "database, MB", broker: b, work: result.Drain, value: sessionsMB, show: whole},
		{name: "WAL, bytes", broker: b, work: result.Drain, value: walBytes, show: whole},
	})
	d.write("#### A billion messages\n\nThe same processor time in hours. At 1,000 messages a second a billion takes eleven days and a half, so that looking for messages, " +
		"and waiting for them, has its part in it; from a backlog it is the work alone.\n\n")
	d.table([]figure{
		{name: "relay, 1,000/s", broker: b, work: result.Latency, value: hours(relayCPU), show: whole},
		{name: "database, 1,000/s", broker: b, work: result.Latency, value: hours(databaseCPU), show: whole},
		{name: "both, 1,000/s", broker: b, work: result.Latency, value: hours(relayCPU, databaseCPU), show: whole},
		{name: "both, backlog", broker: b, work: result.Drain, value: hours(relayCPU, databaseCPU), show: millis},
	})
}

func (d *document) setups() {
	d.write("### How each was set up\n\n| | version | settings, and what they are by default |\n|---|---|---|\n")
	for _, p := range d.run.Peers {
		if p.Stock {
			continue
		}
		var settings []string
		for _, s := range p.Settings {
			text := s.Name + ": " + s.Value
			if s.Default != "" && s.Default != s.Value {
				text += " (" + s.Default + ")"
			}
			settings = append(settings, text)
		}
		d.write("| %s | %s | %s |\n", strong(p.Name), p.Version, strings.Join(settings, "; "))
	}
	d.write("\n")
}

// failures lists all failures.
func (d *document) failures() {
	var rows []string
	for _, c := range d.run.Cells {
		if c.Error != "" {
			rows = append(rows, fmt.Sprintf("* repetition %d, %s, %s, %s: %s\n", c.Repetition, c.Work, c.Broker, c.Peer, c.Error))
		}
	}
	if len(rows) > 0 {
		d.write("### Trials that failed\n\n%s\n", strings.Join(rows, ""))
	}
}

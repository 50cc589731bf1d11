package page

import "github.com/postrider/postrider/test/proof/peers/result"

// byBroker returns a chart with a bar for each broker.
func (d *document) byBroker(title, about string, f figure) chart {
	c := chart{title: title, about: about, show: f.show}
	for _, b := range d.brokers() {
		c.series = append(c.series, proper[b])
	}
	for _, p := range d.peers() {
		r := row{name: p}
		for _, column := range d.each(f) {
			r.bars = append(r.bars, bar{value: d.of(p, column)})
		}
		c.rows = append(c.rows, r)
	}
	return c
}

func (d *document) sustainedChart() chart {
	return d.byBroker("Messages arriving, producers at full speed", "messages a second; longer is better; thin lines: all repetitions",
		figure{work: result.Sustained, value: delivered, show: whole})
}

func (d *document) drainChart() chart {
	c := d.byBroker("A backlog being delivered", "messages a second, logarithmic; longer is better; thin lines: all repetitions",
		figure{work: result.Drain, value: delivered, show: whole})
	c.log = true
	return c
}

func (d *document) latencyChart() chart {
	c := d.byBroker("From commit to the consumer, at a steady rate", "milliseconds, logarithmic; shorter is better; bar: p99, notch: p50",
		figure{work: result.Latency, value: p99, show: millis})
	c.log = true
	for i, r := range c.rows {
		for j, column := range d.each(figure{work: result.Latency, value: p50}) {
			c.rows[i].bars[j].mark = d.of(r.name, column).Median
		}
	}
	return c
}

func (d *document) heldChart(long bool) chart {
	c := chart{title: "Beside a transaction that is open for " + whole(d.age(long).Median) + " s", series: []string{"without", "with"}, show: whole,
		about: "messages arriving a second, producers at full speed; longer is better"}
	for _, p := range d.peers() {
		c.rows = append(c.rows, row{p, []bar{
			{value: d.of(p, figure{work: result.Sustained, broker: d.main(), value: delivered})},
			{value: d.of(p, figure{work: result.HeldSustained, broker: d.main(), value: delivered, long: long})},
		}})
	}
	return c
}

func (d *document) costChart() chart {
	c := chart{title: "Processor time for a million messages of a backlog", about: "seconds; shorter is better; thin lines: all repetitions",
		series: []string{"relay", "database"}, show: whole}
	for _, p := range d.peers() {
		c.rows = append(c.rows, row{p, []bar{
			{value: d.of(p, figure{work: result.Drain, broker: d.main(), value: relayCPU})},
			{value: d.of(p, figure{work: result.Drain, broker: d.main(), value: databaseCPU})},
		}})
	}
	return c
}

package page

import (
	"strings"

	"github.com/postrider/postrider/test/proof/peers/result"
)

// better lists every figure in which a peer was ahead of Postrider, by the medians, and whether the
// ranges overlap.
func (d *document) better() {
	figures := append(append(append(
		d.each(figure{name: "full speed,", work: result.Sustained, value: delivered, show: whole}),
		d.each(figure{name: "backlog,", work: result.Drain, value: delivered, show: whole})...),
		d.each(figure{name: "p50,", work: result.Latency, value: p50, show: millis, less: true})...),
		d.each(figure{name: "p99,", work: result.Latency, value: p99, show: millis, less: true})...)
	b := d.main()
	figures = append(figures,
		figure{name: "producers without a relay", work: result.Alone, value: committed, show: whole},
		figure{name: "old transaction, p99", work: result.HeldLatency, value: p99, show: millis, less: true},
		figure{name: "old transaction, full speed", work: result.HeldSustained, value: delivered, show: whole},
		figure{name: "processor time of the relay, backlog", broker: b, work: result.Drain, value: relayCPU, show: whole, less: true},
		figure{name: "processor time of the database, backlog", broker: b, work: result.Drain, value: databaseCPU, show: whole, less: true},
		figure{name: "processor time of the relay, 1,000/s", broker: b, work: result.Latency, value: relayCPU, show: whole, less: true},
		figure{name: "processor time of the database, 1,000/s", broker: b, work: result.Latency, value: databaseCPU, show: whole, less: true},
		figure{name: "memory of the relay", broker: b, work: result.Drain, value: relayMB, show: whole, less: true},
		figure{name: "memory in the database", broker: b, work: result.Drain, value: sessionsMB, show: whole, less: true},
		figure{name: "WAL of a delivered message", broker: b, work: result.Drain, value: walBytes, show: whole, less: true})
	var rows strings.Builder
	for _, f := range figures {
		ours := d.of("postrider", f)
		if ours.N == 0 {
			continue
		}
		var ahead []string
		for _, p := range d.peers() {
			theirs := d.of(p, f)
			if p == "postrider" || theirs.N == 0 || !isBetter(f, theirs.Median, ours.Median) {
				continue
			}
			text := p + " " + f.show(theirs.Median)
			if theirs.Min <= ours.Max && ours.Min <= theirs.Max {
				text += "*"
			}
			ahead = append(ahead, text)
		}
		if len(ahead) > 0 {
			rows.WriteString("| " + f.name + " | " + f.show(ours.Median) + " | " + strings.Join(ahead, ", ") + " |\n")
		}
	}
	if rows.Len() == 0 {
		return
	}
	d.write("### Where a peer was better in this run\n\nEvery figure above in which a peer's median is better than Postrider's. With a star, the ranges overlap.\n\n"+
		"| | Postrider | better |\n|---|---|---|\n%s\n", strings.ReplaceAll(rows.String(), "*", `\*`))
}

// isBetter ignores differences that disappear when the values are rounded.
func isBetter(f figure, theirs, ours float64) bool {
	if f.show(theirs) == f.show(ours) {
		return false
	}
	return (theirs < ours) == f.less
}

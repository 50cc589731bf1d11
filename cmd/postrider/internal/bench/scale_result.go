package bench

import (
	"fmt"

	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// million is the number of messages that the costs of the table refer to.
const million = 1e6

// Table implements [Result].
func (r ScaleResult) Table() [][]string {
	rows := [][]string{{
		"", "alone/s", "relayed/s", "ratio", "server CPU s/M", "of it relays", "relay CPU s/M", "WAL bytes", "statements/M", "connections", "MB",
	}}
	perMillion := func(phases []scale.Phase, figure func(scale.Phase) float64) float64 {
		return million * scale.Median(phases, scale.PerCommitted(figure))
	}
	rows = append(rows, []string{
		"business row alone", whole(scale.Median(r.Business, scale.Phase.PerSecond)), "", "",
		millis(perMillion(r.Business, scale.ServerCPU)), "", "", whole(perMillion(r.Business, scale.WAL) / million), "", "", "",
	})
	for _, c := range r.Cells {
		if c.Series == scale.Idle {
			continue
		}
		alone, relayed := scale.Median(c.Bare, scale.Phase.PerSecond), scale.Median(c.Relayed, scale.Phase.PerSecond)
		each := scale.PerCommitted
		if c.Series == scale.Drain {
			relayed, each = scale.Median(c.Relayed, scale.Phase.PublishedPerSecond), scale.PerPublished
		}
		cost := func(figure func(scale.Phase) float64) float64 {
			return million * scale.Median(c.Relayed, each(figure))
		}
		row := []string{label(c), "", whole(relayed), "",
			millis(cost(scale.ServerCPU)), millis(cost(scale.ReaderCPU)), millis(cost(scale.RelayCPU)),
			whole(cost(scale.WAL) / million), whole(cost(scale.Statements)),
			count(int64(scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayConnections) }))),
			whole(scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayMemory) }) / (1 << 20)),
		}
		if len(c.Bare) > 0 {
			row[1], row[3] = whole(alone), fraction(quotient(relayed, alone))
		}
		rows = append(rows, row)
	}
	rows = append(rows, []string{}, []string{"idle, a second", "", "", "", "server CPU ms", "of it relays", "relay CPU ms", "WAL bytes", "statements",
		"connections", "MB"})
	for _, c := range r.In(scale.Idle) {
		cost := func(figure func(scale.Phase) float64) float64 {
			return scale.Median(c.Relayed, scale.PerSecond(figure))
		}
		rows = append(rows, []string{label(c), "", "", "",
			millis(1000 * cost(scale.ServerCPU)), millis(1000 * cost(scale.ReaderCPU)), millis(1000 * cost(scale.RelayCPU)),
			whole(cost(scale.WAL)), millis(cost(scale.Statements)),
			count(int64(scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayConnections) }))),
			whole(scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayMemory) }) / (1 << 20)),
		})
	}
	rows = append(rows, []string{}, []string{"one sequence, numbers/s", whole(r.Sequence)})
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 && cell == "" {
				row[i] = "-" // an empty cell would end the column
			}
		}
	}
	for _, line := range r.LeftOut {
		rows = append(rows, []string{fmt.Sprintf("left out: %s", line)})
	}
	return rows
}

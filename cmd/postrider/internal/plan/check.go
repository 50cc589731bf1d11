package plan

import (
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// Check compares the model with a measured layout that the model was not made from.
type Check struct {
	Cell      scale.Cell
	Relay     Pair // cores of relays
	Readers   Pair // cores of the server for relays
	WAL       Pair // bytes a second
	Statement Pair // a second
}

// Pair is a figure of the model and its measured value.
type Pair struct{ Computed, Measured float64 }

// Off returns the relative error of the model: positive if it computes more than was measured.
func (p Pair) Off() float64 {
	if p.Measured == 0 {
		return 0
	}
	return p.Computed/p.Measured - 1
}

// Checks compares the model with the cells of several relays, feeds and databases at a steady rate,
// which the model was not made from. It ignores cells at full load: when all cores are busy, relays
// poll less often and read larger batches.
func (m *Model) Checks() (checks []Check) {
	for _, c := range m.set.In(scale.Check) {
		rate := scale.Median(c.Relayed, scale.Phase.PerSecond)
		databases, feeds, relays := float64(c.Databases), float64(c.Feeds), float64(c.Relays)
		each, memberships := rate/databases, databases*feeds*relays
		pair := func(computed float64, figure func(scale.Phase) float64) Pair {
			return Pair{computed, scale.Median(c.Relayed, scale.PerSecond(figure))}
		}
		checks = append(checks, Check{
			Cell:      c,
			Relay:     pair(memberships*m.relays.at(each/relays), scale.RelayCPU),
			Readers:   pair(memberships*m.readers.at(each/relays), scale.ReaderCPU),
			WAL:       pair(rate*m.wal.at(float64(c.Payload))+databases*feeds*m.ledger.at(each), scale.WAL),
			Statement: pair(memberships*m.statements.at(each/relays), scale.Statements),
		})
	}
	return checks
}

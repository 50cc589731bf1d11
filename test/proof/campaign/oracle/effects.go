package oracle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// consumed is what one consumer did for one key.
type consumed struct {
	done  bits
	order order
}

// deeds compares what all consumers did with the ledger.
type deeds struct {
	effects   int64
	truncated bool
	consumers map[string][]string // of each destination; the index of a name is the consumer's number
	owed      map[string][]string // consumers that must process everything received

	phantom  evidence // I2
	inverted evidence // I4
	double   evidence // I5
}

func readEffects(r *record.Reader, l *ledger) (*deeds, error) {
	d := &deeds{consumers: map[string][]string{}, owed: r.Run.Consumers}
	for destination, names := range r.Run.Consumers {
		d.consumers[destination] = slices.Clone(names)
	}
	last := int64(-1 << 62)
	for e, err := range r.Effects() {
		if errors.Is(err, record.ErrTruncated) {
			d.truncated = true
			break
		}
		if err != nil {
			return nil, err
		}
		if e.N <= last {
			return nil, fmt.Errorf("effects are not in the order of their numbers: %d comes after %d", e.N, last)
		}
		last = e.N
		d.effects++
		d.take(e, l)
	}
	if d.owed == nil { // not recorded: use those that were seen
		d.owed = d.consumers
	}
	return d, nil
}

func (d *deeds) take(e record.Effect, l *ledger) {
	k, seq := l.find(e.Message)
	if k == nil {
		d.phantom.add("%s %s %d %s was done by %s and never committed", e.Destination, e.Key, e.Seq, e.ID, e.Consumer)
		return
	}
	number := slices.Index(d.consumers[e.Destination], e.Consumer)
	if number < 0 {
		number = len(d.consumers[e.Destination])
		d.consumers[e.Destination] = append(d.consumers[e.Destination], e.Consumer)
	}
	for number >= len(k.consumed) {
		k.consumed = append(k.consumed, consumed{})
	}
	c := &k.consumed[number]
	if c.done.set(int(seq - 1)) {
		d.double.add("%s did %s %s %d again, as effect %d", e.Consumer, e.Destination, e.Key, seq, e.N)
		return
	}
	highest := c.order.max
	if c.order.first(seq) && !k.unordered {
		d.inverted.add("%s did %s %s %d after %d, as effect %d", e.Consumer, e.Destination, e.Key, seq, highest, e.N)
	}
}

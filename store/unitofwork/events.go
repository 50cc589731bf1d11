package unitofwork

import (
	"slices"
	"sync/atomic"

	"github.com/postrider/postrider"
)

// Events keeps what has happened to an aggregate until a unit of work has written it. It is embedded in the aggregate, or is a
// field of it that is tracked in its place. The zero value is empty. It belongs to one goroutine at a time, as the aggregate
// does.
type Events struct{ recorded []event }

type event struct {
	at      int64 // its place among all that was ever recorded
	message postrider.Message
}

// moments counts what is recorded anywhere, so that the events of many aggregates have one order.
var moments atomic.Int64

// Aggregate is anything that has [Events]: by embedding them, or as a pointer to them.
type Aggregate interface{ events() *Events }

var _ Aggregate = (*Events)(nil)

func (e *Events) events() *Events { return e }

// Record adds messages, to be written by the unit of work that tracks the aggregate.
func (e *Events) Record(msgs ...postrider.Message) {
	for _, m := range msgs {
		e.recorded = append(e.recorded, event{moments.Add(1), m})
	}
}

// Recorded returns what was recorded and is not written yet, oldest first. It is for tests of aggregates.
func (e *Events) Recorded() []postrider.Message {
	msgs := make([]postrider.Message, len(e.recorded))
	for i, r := range e.recorded {
		msgs[i] = r.message
	}
	return msgs
}

// forget drops what was recorded after one moment and not after another.
func (e *Events) forget(after, upTo int64) {
	e.recorded = slices.DeleteFunc(e.recorded, func(r event) bool { return r.at > after && r.at <= upTo })
}

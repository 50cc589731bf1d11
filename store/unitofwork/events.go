package unitofwork

import (
	"slices"
	"sync/atomic"

	"github.com/postrider/postrider"
)

// Events holds the events of an aggregate until a unit of work has written them. Embed it in the
// aggregate, or track a field of this type in place of the aggregate. The zero value is empty. It
// is not safe for concurrent use.
type Events struct{ recorded []event }

type event struct {
	at      int64 // number of the event in the order of recording
	message postrider.Message
}

// moments numbers all events of the process, so that the events of many aggregates have one order.
var moments atomic.Int64

// Aggregate is implemented by types that embed [Events], and by *Events.
type Aggregate interface{ events() *Events }

var _ Aggregate = (*Events)(nil)

func (e *Events) events() *Events { return e }

// Record adds messages. The unit of work that tracks the aggregate writes them.
func (e *Events) Record(msgs ...postrider.Message) {
	for _, m := range msgs {
		e.recorded = append(e.recorded, event{moments.Add(1), m})
	}
}

// Recorded returns the recorded messages that are not written yet, oldest first. It is for tests of
// aggregates.
func (e *Events) Recorded() []postrider.Message {
	msgs := make([]postrider.Message, len(e.recorded))
	for i, r := range e.recorded {
		msgs[i] = r.message
	}
	return msgs
}

// forget drops the events with numbers after the first and up to the second argument.
func (e *Events) forget(after, upTo int64) {
	e.recorded = slices.DeleteFunc(e.recorded, func(r event) bool { return r.at > after && r.at <= upTo })
}

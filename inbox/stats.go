package inbox

import (
	"sync/atomic"

	"github.com/postrider/postrider"
)

// Stats counts what an inbox has done since the process started.
type Stats struct {
	Handled  int64 // messages whose effect was committed, at the first attempt or later
	Repeated int64 // deliveries skipped because the message was received before
	Waiting  int64 // messages deferred behind an earlier one of their key
	Failed   int64 // failed attempts that will be retried
	Dead     int64 // messages that became dead letters, including late ones
	Late     int64 // messages outside of the window
}

type counters struct{ handled, repeated, waiting, failed, dead, late atomic.Int64 }

// Stats returns the current counts.
func (in *Inbox[Tx]) Stats() Stats {
	c := &in.stats
	return Stats{c.handled.Load(), c.repeated.Load(), c.waiting.Load(), c.failed.Load(), c.dead.Load(), c.late.Load()}
}

func (in *Inbox[Tx]) count(v Verdict, m *postrider.Message) {
	switch v {
	case Handled:
		in.stats.handled.Add(1)
	case Repeated:
		in.stats.repeated.Add(1)
	case Waiting:
		in.stats.waiting.Add(1)
	case Late:
		in.stats.late.Add(1)
		in.stats.dead.Add(1)
		in.cfg.Logger.Error("inbox: dead letter: the message is too old or too far in the future to know whether it was handled before", "consumer", in.name,
			"", *m, "made", m.ID.Time(),
			"next", "postrider dead show --consumer "+in.name+" "+m.ID.String())
	}
}

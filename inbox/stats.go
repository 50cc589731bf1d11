package inbox

import (
	"sync/atomic"

	"github.com/postrider/postrider"
)

// Stats counts what an inbox has done since the process started.
type Stats struct {
	Handled  int64 // messages whose effect was committed, also at a later attempt
	Repeated int64 // deliveries that were skipped
	Waiting  int64 // messages deferred behind one of their key
	Failed   int64 // attempts that failed and are repeated
	Dead     int64 // dead letters, late ones included
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
		in.cfg.Logger.Error("inbox: dead letter, because nobody knows whether it was handled before", "consumer", in.name,
			"", *m, "made", m.ID.Time(),
			"next", "postrider dead show --consumer "+in.name+" "+m.ID.String())
	}
}

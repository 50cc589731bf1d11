package reconcile

import (
	"sync/atomic"
)

// Stats is what this process has done for a job since it started, for metrics such as reconcile_fixed_total. What all
// processes have done is in [State].
type Stats struct {
	Job          string
	Runs, Failed int64
	Counts
}

type tally struct{ runs, failed, found, fixed atomic.Int64 }

// Stats returns the figures of each job, in the order in which they were given to [New].
func (p *Reconciler[Tx]) Stats() []Stats {
	all := make([]Stats, len(p.jobs))
	for i := range p.jobs {
		t := p.tally[p.jobs[i].Name]
		all[i] = Stats{p.jobs[i].Name, t.runs.Load(), t.failed.Load(), Counts{t.found.Load(), t.fixed.Load()}}
	}
	return all
}

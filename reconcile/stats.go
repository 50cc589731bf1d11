package reconcile

import (
	"sync/atomic"
)

// Stats counts what this process has done for a job since it started, for metrics such as
// reconcile_fixed_total. [State] has the totals of all processes.
type Stats struct {
	Job          string
	Runs, Failed int64
	Counts
}

type tally struct{ runs, failed, found, fixed atomic.Int64 }

// Stats returns the statistics of each job, in the order of the jobs passed to [New].
func (p *Reconciler[Tx]) Stats() []Stats {
	all := make([]Stats, len(p.jobs))
	for i := range p.jobs {
		t := p.tally[p.jobs[i].Name]
		all[i] = Stats{p.jobs[i].Name, t.runs.Load(), t.failed.Load(), Counts{t.found.Load(), t.fixed.Load()}}
	}
	return all
}

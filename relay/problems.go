package relay

import (
	"sync"

	"github.com/postrider/postrider/store/feeds"
)

// problems collects the problems of the destination that the workers report.
type problems struct {
	mu  sync.Mutex
	all map[string]feeds.Problem
}

func (p *problems) add(some []feeds.Problem) {
	if len(some) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[string]feeds.Problem)
	}
	for _, one := range some {
		if one.Failures > 0 {
			one.Failures += p.all[one.Name].Failures
		}
		p.all[one.Name] = one
	}
}

func (p *problems) take() (all []feeds.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		all = append(all, one)
	}
	p.all = nil
	return all
}

// restore puts back problems that could not be reported, unless a newer one of the same name
// exists.
func (p *problems) restore(old []feeds.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range old {
		if _, ok := p.all[one.Name]; ok {
			continue
		}
		if p.all == nil {
			p.all = make(map[string]feeds.Problem)
		}
		p.all[one.Name] = one
	}
}

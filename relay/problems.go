package relay

import (
	"sync"

	"github.com/postrider/postrider"
)

// problems gathers what the lanes say is wrong with the destination.
type problems struct {
	mu  sync.Mutex
	all map[string]postrider.Problem
}

func (p *problems) add(some []postrider.Problem) {
	if len(some) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[string]postrider.Problem)
	}
	for _, one := range some {
		if one.Failures > 0 {
			one.Failures += p.all[one.Name].Failures
		}
		p.all[one.Name] = one
	}
}

func (p *problems) take() (all []postrider.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		all = append(all, one)
	}
	p.all = nil
	return all
}

// restore puts back what could not be reported, unless there is news of it.
func (p *problems) restore(old []postrider.Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range old {
		if _, ok := p.all[one.Name]; ok {
			continue
		}
		if p.all == nil {
			p.all = make(map[string]postrider.Problem)
		}
		p.all[one.Name] = one
	}
}

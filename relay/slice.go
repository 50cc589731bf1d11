package relay

import (
	"context"
	"time"

	"github.com/postrider/postrider"
)

const (
	// watchInterval is the time between two looks at whether a tenant holds up the others.
	watchInterval = 250 * time.Millisecond
	// crowd is the share of what is waiting, in percent, that makes one tenant the one who does.
	crowd = 75
	// mergeAfter is for how long a slice must not have been behind before it is read together with the others again.
	mergeAfter = 5 * time.Second
)

// watch finds out whether the lane is held up by one tenant: more than a second's work has been read, there is more, and
// nearly all of it is of one tenant. The lane then ends, and that tenant gets a slice of its own.
func (l *lane) watch(now time.Time) {
	if l.t.splitter == nil || l.slice != nil || now.Before(l.watchAt) {
		return
	}
	w := &l.window
	moved, backlog := w.first-l.watched, w.end-w.first
	since := watchInterval + now.Sub(l.watchAt)
	first := l.watchAt.IsZero()
	l.watched, l.watchAt = w.first, now.Add(watchInterval)
	if first || moved == 0 || backlog < l.t.r.cfg.ReadAhead/2 || time.Duration(backlog)*since < time.Duration(moved)*time.Second {
		return
	}
	if l.split = w.crowd(); l.split != "" {
		l.t.r.log.Info("relay: one tenant holds up the others, and is read apart from them", "shard", l.shard, "tenant", l.split)
		l.drain()
	}
}

// crowd returns the tenant that most of the messages are of, judged by a sample; empty if there is none.
func (w *window) crowd() string {
	const sample = 100
	counts := make(map[string]int)
	step := max((w.end-w.first)/sample, 1)
	n, guess := 0, 0
	for pos := w.first; pos < w.end; pos += step {
		guess = w.find(pos, guess)
		counts[w.runs[guess].Messages[pos-w.runs[guess].at].TenantID]++
		n++
	}
	for tenant, count := range counts {
		if tenant != "" && count*100 >= n*crowd {
			return tenant
		}
	}
	return ""
}

// join ends a slice that has caught up, and the lane of its shard with it, so that they can be read together again. One at
// a time: others wait.
func (t *tenure) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.held {
		if l.slice == nil || l.draining.Load() || time.Since(time.Unix(0, l.behind.Load())) < mergeAfter {
			continue
		}
		whole := t.held[l.slice.Base]
		if whole == nil || whole.draining.Load() || whole.room() < t.r.cfg.ReadAhead/2 {
			continue
		}
		l.partner, whole.partner = whole, l
		l.drain()
		whole.drain()
		return
	}
}

// rearrange splits or merges the shards of lanes that have ended for that. It returns the others that have ended, and
// whether Balance has something to take.
func (t *tenure) rearrange(ended []*lane) (rest []*lane, changed bool, err error) {
	for _, l := range ended {
		switch {
		case l.split != "":
			changed = true
			err = t.giveUp(t.ctx, []*lane{l}, func(ctx context.Context, marks []postrider.Mark) error {
				_, err := t.splitter.Split(ctx, marks[0], l.split)
				return err
			})
		case l.partner == nil || !t.holds(l.partner):
			rest = append(rest, l)
		case l.slice != nil && isClosed(l.partner.done):
			changed = true
			err = t.giveUp(t.ctx, []*lane{l.partner, l}, func(ctx context.Context, marks []postrider.Mark) error {
				done, err := t.splitter.Merge(ctx, marks[0], marks[1])
				if done {
					t.r.log.Info("relay: a tenant has caught up, and is read together with the others", "shard", l.slice.Base, "tenant", l.slice.Tenant)
				}
				return err
			})
		}
		if err != nil {
			return rest, changed, err
		}
	}
	return rest, changed, nil
}

func (t *tenure) holds(l *lane) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held[l.shard] == l
}

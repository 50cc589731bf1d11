package auth

import (
	"sync"
	"time"
)

// used remembers what may not be used any more, for as long as it could be.
type used struct {
	most int // that are remembered; 0: all

	mu    sync.Mutex
	until map[string]time.Time
	sweep int // how many there are when it is time to look for those that can be forgotten
}

// add reports whether it is new, and can be remembered.
func (u *used) add(id string, until, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until, u.sweep = make(map[string]time.Time), 1000
	}
	if _, known := u.until[id]; known {
		return false
	}
	if len(u.until) >= u.sweep {
		for id, end := range u.until {
			if end.Before(now) {
				delete(u.until, id)
			}
		}
		u.sweep = max(1000, 2*len(u.until))
	}
	if u.most > 0 && len(u.until) >= u.most {
		return false
	}
	u.until[id] = until
	return true
}

func (u *used) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, known := u.until[id]
	return known
}

package auth

import (
	"sync"
	"time"
)

// used records IDs that must not be used again, until they expire.
type used struct {
	most int // the maximum number of IDs; 0: no limit

	mu    sync.Mutex
	until map[string]time.Time
	sweep int // the number of IDs at which to remove expired ones
}

// add records an ID. It returns false if the ID is known, or if there are too many.
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

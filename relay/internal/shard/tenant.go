package shard

import "time"

const (
	// watchInterval is the time between two checks for a tenant that delays the others.
	watchInterval = 250 * time.Millisecond
	// dominantShare is the percentage of the backlog that one tenant must have to be split off.
	dominantShare = 75
)

// tenants detects whether one tenant delays the others of a shard: the window holds more than a
// second's work, more than half of ReadAhead, and nearly all of it is from one tenant.
type tenants struct {
	enabled bool
	first   int       // the first unconfirmed message at the last check
	next    time.Time // time of the next check
}

// dominant returns the tenant that delays the others; empty if there is none.
func (t *tenants) dominant(w *window, now time.Time, readAhead int) string {
	if !t.enabled || now.Before(t.next) {
		return ""
	}
	moved, backlog := w.first-t.first, w.end-w.first
	since := watchInterval + now.Sub(t.next)
	begun := !t.next.IsZero()
	t.first, t.next = w.first, now.Add(watchInterval)
	if !begun || moved == 0 || backlog < readAhead/2 || time.Duration(backlog)*since < time.Duration(moved)*time.Second {
		return ""
	}
	return w.dominantTenant()
}

// dominantTenant returns the tenant of most messages in the window, estimated from a sample; empty
// if there is none.
func (w *window) dominantTenant() string {
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
		if tenant != "" && count*100 >= n*dominantShare {
			return tenant
		}
	}
	return ""
}

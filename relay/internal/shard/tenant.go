package shard

import "time"

const (
	// watchInterval is the time between two looks at whether a tenant holds up the others.
	watchInterval = 250 * time.Millisecond
	// crowd is the share of what is waiting, in percent, that makes one tenant the one who does.
	crowd = 75
)

// tenants finds out whether the shard is held up by one tenant: more than a second's work has been read, there is more, and
// nearly all of it is of one tenant.
type tenants struct {
	enabled bool
	first   int       // the first unconfirmed message at the last look
	next    time.Time // when to look again
}

// holdup returns the tenant that holds up the others; empty if there is none.
func (t *tenants) holdup(w *window, now time.Time, readAhead int) string {
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
	return w.crowd()
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

package route

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

const (
	maxTypes     = 1000 // counted separately
	maxShown     = 10   // in one log line
	otherTypes   = "(others)"
	unmatchedLog = time.Minute
)

// unmatched counts and logs messages without a route.
type unmatched struct {
	log *slog.Logger

	mu     sync.Mutex
	byType map[string]int64
	said   time.Time
}

func (u *unmatched) add(m *postrider.Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byType == nil {
		u.byType = make(map[string]int64)
	}
	name := m.Type
	if _, ok := u.byType[name]; !ok && len(u.byType) >= maxTypes {
		name = otherTypes
	}
	u.byType[name]++
	if now := time.Now(); u.said.IsZero() || now.Sub(u.said) >= unmatchedLog {
		u.said = now
		u.log.Error("route: no rule matches, the messages wait", "type", m.Type, "count", u.byType[name], "all", u.summary(),
			"remedy", fmt.Sprintf("add to the routes a rule with types: [%q], or one with drop: true if nobody wants them", m.Type))
	}
}

// summary returns all types and counts as text of bounded length.
func (u *unmatched) summary() string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(u.byType)) {
		if i == maxShown {
			fmt.Fprintf(&b, " and %d more types", len(u.byType)-i)
			break
		}
		fmt.Fprintf(&b, " %s=%d", name, u.byType[name])
	}
	return strings.TrimSpace(b.String())
}

func (u *unmatched) counts() map[string]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.byType)
}

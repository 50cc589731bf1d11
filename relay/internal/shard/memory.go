package shard

import (
	"time"

	"github.com/postrider/postrider"
)

const (
	memorySpan = 5 * time.Second
	memorySize = 10_000
)

// memory holds the messages that were confirmed recently: those of the last memorySpan to twice
// that, or at least the last memorySize.
//
// Settling does not wait for the server's disk, so a server that crashes may lose the last
// progress. The messages are then read again, and memory saves the same process from sending them
// again.
type memory struct {
	arrived        map[postrider.ID]bool // confirmed before the shard was taken; the store may have lost that
	since          time.Time             // the start of recent
	recent, former []postrider.ID
}

// note adds the confirmed messages of a call.
func (m *memory) note(call []postrider.Message, errs []error, now time.Time) {
	if now.Sub(m.since) > memorySpan || len(m.recent)+len(call) > memorySize {
		m.recent, m.former, m.since = m.former[:0], m.recent, now
	}
	for i := range call {
		if answer(errs, i) == nil && call[i].ID != (postrider.ID{}) {
			m.recent = append(m.recent, call[i].ID)
		}
	}
}

func (m *memory) recall() map[postrider.ID]bool {
	all := make(map[postrider.ID]bool, len(m.recent)+len(m.former))
	for _, ids := range [][]postrider.ID{m.recent, m.former} {
		for _, id := range ids {
			all[id] = true
		}
	}
	return all
}

package shard

import (
	"time"

	"github.com/postrider/postrider"
)

const (
	memorySpan = 5 * time.Second
	memorySize = 10_000
)

// memory holds which messages were confirmed lately: those of the last memorySpan and up to as long before, or the last
// memorySize at least.
//
// A server that crashes may forget what was settled shortly before, for that does not wait for its disk. The messages are
// read again then, and the same process need not send them again.
type memory struct {
	arrived        map[postrider.ID]bool // before the shard was taken, of what the store may have forgotten
	since          time.Time             // when recent began
	recent, former []postrider.ID
}

// note remembers those messages of a call that were confirmed.
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

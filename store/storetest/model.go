package storetest

import (
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// model is the simplest store: it remembers every message and what happened to it, and checks the
// real store.
type model struct {
	facts   map[postrider.ID]*fact
	keys    map[string][]*fact // by key, in the order of enqueueing
	shards  map[string]int     // by key
	batches map[int][]feeds.Batch
}

// fact is one message. Times are numbers of steps; 0 means never.
type fact struct {
	key       string
	tx        int
	enqueued  int
	committed int
	handed    bool // since the shard was last taken
	settled   bool
}

func newModel() *model {
	return &model{
		facts:   make(map[postrider.ID]*fact),
		keys:    make(map[string][]*fact),
		shards:  make(map[string]int),
		batches: make(map[int][]feeds.Batch),
	}
}

func (m *model) enqueue(step, tx int, msg postrider.Message) {
	f := &fact{key: msg.OrderKey(), tx: tx, enqueued: step}
	m.facts[msg.ID] = f
	m.keys[f.key] = append(m.keys[f.key], f)
}

func (m *model) commit(step, tx int) {
	for _, f := range m.facts {
		if f.tx == tx {
			f.committed = step
		}
	}
}

// read records a batch, and returns an error if it contradicts the model.
func (m *model) read(b feeds.Batch) error {
	for i, msg := range b.Messages {
		f := m.facts[msg.ID]
		switch {
		case f == nil:
			return fmt.Errorf("message %d of %d in shard %d was never enqueued", i, len(b.Messages), b.Shard)
		case f.committed == 0:
			return fmt.Errorf("a message of key %s, enqueued at step %d, was not committed", f.key, f.enqueued)
		case f.settled:
			return fmt.Errorf("a message of key %s, enqueued at step %d, was settled before", f.key, f.enqueued)
		case f.handed:
			return fmt.Errorf("a message of key %s, enqueued at step %d, came twice", f.key, f.enqueued)
		}
		if s, ok := m.shards[f.key]; ok && s != b.Shard {
			return fmt.Errorf("key %s was in shard %d and is now in shard %d", f.key, s, b.Shard)
		}
		m.shards[f.key] = b.Shard
		if err := m.inTurn(f); err != nil {
			return err
		}
		f.handed = true
	}
	m.batches[b.Shard] = append(m.batches[b.Shard], b)
	return nil
}

// inTurn checks that everything that must precede f was read: what was committed before f was
// enqueued, and what was enqueued before it in the same transaction.
func (m *model) inTurn(f *fact) error {
	for _, e := range m.keys[f.key] {
		if e == f {
			return nil
		}
		precedes := e.tx == f.tx || (e.committed > 0 && e.committed < f.enqueued)
		if precedes && !e.handed && !e.settled {
			return fmt.Errorf("key %s: the message of step %d came before that of step %d, which was committed at step %d",
				f.key, f.enqueued, e.enqueued, e.committed)
		}
	}
	return nil
}

// settle records a mark for the nth batch of a shard.
func (m *model) settle(shard, nth, done int) {
	for i, b := range m.batches[shard][:nth+1] {
		for j, msg := range b.Messages {
			if i < nth || j < done {
				m.facts[msg.ID].settled = true
			}
		}
	}
}

// release drops the unsettled reads of a shard.
func (m *model) release(shard int) {
	for _, b := range m.batches[shard] {
		for _, msg := range b.Messages {
			m.facts[msg.ID].handed = false
		}
	}
	delete(m.batches, shard)
}

// waiting counts the committed messages that are neither read nor settled.
func (m *model) waiting() int {
	n := 0
	for _, f := range m.facts {
		if f.committed > 0 && !f.handed && !f.settled {
			n++
		}
	}
	return n
}

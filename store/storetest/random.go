package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// testRandom runs random sequences of operations against the store and the model.
func testRandom(t *testing.T, open func(*testing.T) Harness) {
	for _, seed := range seedsOf(t, 6) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("to repeat: STORETEST_SEED=%d", seed)
			m := &machine{t: t, h: open(t), rng: rand.New(rand.NewPCG(seed, 0)), model: newModel()}
			m.members = []*reader{join(t, m.h, "feed", longLease), join(t, m.h, "feed", longLease)}
			m.run(250)
		})
	}
}

// seedsOf returns n seeds, or the one of STORETEST_SEED.
func seedsOf(t *testing.T, n int) []uint64 {
	t.Helper()
	if s := os.Getenv("STORETEST_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("STORETEST_SEED: %v", err)
		}
		return []uint64{seed}
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	return seeds
}

// machine runs random operations against a store: two members share a feed while transactions begin
// and end.
type machine struct {
	t       *testing.T
	h       Harness
	rng     *rand.Rand
	model   *model
	members []*reader
	open    []transaction
	step    int
}

type transaction struct {
	Tx
	number int
}

func (m *machine) run(steps int) {
	m.t.Helper()
	operations := []struct {
		weight int
		do     func()
	}{
		{3, m.begin}, {8, m.enqueue}, {3, m.commit}, {1, m.rollback},
		{8, m.read}, {5, m.settle}, {2, m.balance}, {2, m.release}, {1, m.replace},
	}
	var wheel []func()
	for _, op := range operations {
		wheel = append(wheel, slices.Repeat([]func(){op.do}, op.weight)...)
	}
	for m.step = 1; m.step <= steps; m.step++ {
		wheel[m.rng.IntN(len(wheel))]()
	}
	m.finish()
}

func (m *machine) begin() {
	if len(m.open) < 6 {
		m.open = append(m.open, transaction{m.h.Begin(m.t), m.step})
	}
}

func (m *machine) enqueue() {
	if len(m.open) == 0 {
		return
	}
	tx := m.open[m.rng.IntN(len(m.open))]
	var msgs []postrider.Message
	for range 1 + m.rng.IntN(3) {
		msg := one(fmt.Sprint("k", m.rng.IntN(10)))
		m.model.enqueue(m.step, tx.number, msg)
		msgs = append(msgs, msg)
	}
	enqueue(m.t, tx, msgs...)
}

func (m *machine) commit() {
	if tx, ok := m.end(); ok {
		commit(m.t, tx)
		m.model.commit(m.step, tx.number)
	}
}

func (m *machine) rollback() {
	if tx, ok := m.end(); ok {
		rollback(m.t, tx)
	}
}

func (m *machine) end() (transaction, bool) {
	if len(m.open) == 0 {
		return transaction{}, false
	}
	i := m.rng.IntN(len(m.open))
	tx := m.open[i]
	m.open = slices.Delete(m.open, i, i+1)
	return tx, true
}

func (m *machine) read() {
	r := m.member()
	var shards []int
	for _, s := range r.shards {
		if m.rng.IntN(3) > 0 {
			shards = append(shards, s)
		}
	}
	m.judge(r.readShards(1+m.rng.IntN(5), shards...))
}

func (m *machine) judge(batches []feeds.Batch) {
	m.t.Helper()
	for _, b := range batches {
		if err := m.model.read(b); err != nil {
			m.t.Fatalf("step %d: %v", m.step, err)
		}
	}
}

func (m *machine) settle() {
	r := m.member()
	r.mark(m.marks(r.shards)...)
}

// release releases some shards; about half of the marks also move the position.
func (m *machine) release() {
	r := m.member()
	var some []int
	for _, s := range r.shards {
		if m.rng.IntN(3) == 0 {
			some = append(some, s)
		}
	}
	m.giveUp(r, some)
}

// replace replaces a member by a new one.
func (m *machine) replace() {
	i := m.rng.IntN(len(m.members))
	m.giveUp(m.members[i], slices.Clone(m.members[i].shards))
	m.members[i].close()
	m.members[i] = join(m.t, m.h, "feed", longLease)
}

func (m *machine) giveUp(r *reader, shards []int) {
	r.release(m.marks(shards)...)
	for _, s := range shards {
		m.model.release(s)
	}
}

// marks returns a mark for each shard, of any batch that was read, possibly an earlier one than was
// last settled.
func (m *machine) marks(shards []int) []feeds.Mark {
	marks := bare(shards)
	for i, s := range shards {
		batches := m.model.batches[s]
		if len(batches) == 0 || m.rng.IntN(2) == 0 {
			continue
		}
		nth := m.rng.IntN(len(batches))
		marks[i].Batch = &batches[nth]
		marks[i].Done = m.rng.IntN(len(batches[nth].Messages) + 1)
		m.model.settle(s, nth, marks[i].Done)
	}
	return marks
}

func (m *machine) balance() {
	r := m.member()
	before := slices.Clone(r.shards)
	r.balance()
	for _, s := range before {
		if !slices.Contains(r.shards, s) {
			m.t.Fatalf("step %d: shard %d went, though its lease was good", m.step, s)
		}
	}
	for _, other := range m.members {
		for _, s := range other.shards {
			if other != r && slices.Contains(r.shards, s) {
				m.t.Fatalf("step %d: shard %d is held by two members", m.step, s)
			}
		}
	}
}

func (m *machine) member() *reader { return m.members[m.rng.IntN(len(m.members))] }

// finish ends all transactions, and lets one new member read the rest.
func (m *machine) finish() {
	for len(m.open) > 0 {
		m.step++
		if m.rng.IntN(2) == 0 {
			m.commit()
		} else {
			m.rollback()
		}
	}
	for _, r := range m.members {
		m.giveUp(r, slices.Clone(r.shards))
		r.close()
	}
	r := joinAlone(m.t, m.h, "feed", longLease)
	eventually(m.t, "everything committed has arrived", func() bool {
		m.judge(r.read(4))
		return m.model.waiting() == 0
	})
	r.idle()
}

package kafka

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitions are those of a topic that are ours, and what is done of them. The client commits what is marked.
type partitions struct {
	topic  string
	ctx    context.Context // of Consume
	client *kgo.Client

	mu  sync.Mutex
	all map[int32]*partition
}

// partition follows the records of one partition. It never holds more of them than are in flight, even if the oldest is
// never done.
type partition struct {
	open map[int64]int32 // records that are not done: offset → epoch of the leader that they came from
	next kgo.EpochOffset // behind the last record
}

// position is up to where all records are done.
func (p *partition) position() kgo.EpochOffset {
	if len(p.open) == 0 {
		return p.next
	}
	first := int64(math.MaxInt64)
	for offset := range p.open {
		first = min(first, offset)
	}
	return kgo.EpochOffset{Epoch: p.open[first], Offset: first}
}

// begin follows a record. It returns what to call when the record is done.
func (ps *partitions) begin(r *kgo.Record) func() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[r.Partition]
	p.open[r.Offset] = r.LeaderEpoch
	p.next = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	return func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(p.open, r.Offset)
		if ps.all[r.Partition] == p { // not lost meanwhile, or won back
			ps.client.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{r.Topic: {r.Partition: p.position()}})
		}
	}
}

func (ps *partitions) assigned(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, n := range topics[ps.topic] {
		ps.all[n] = &partition{open: make(map[int64]int32)}
	}
}

// revoked gives partitions away: handlers under way may finish for a while, so that the next member does not handle the
// same messages at the same time, and what is done is committed.
func (ps *partitions) revoked(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	wait, cancel := context.WithTimeout(ps.ctx, 10*time.Second)
	defer cancel()
	for tick := time.Tick(20 * time.Millisecond); wait.Err() == nil && ps.busy(topics[ps.topic]); {
		select {
		case <-tick:
		case <-wait.Done():
		}
	}
	commit, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = client.CommitMarkedOffsets(commit) // if it fails, what is done comes again
	ps.lost(ctx, client, topics)
}

func (ps *partitions) busy(numbers []int32) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, n := range numbers {
		if p := ps.all[n]; p != nil && len(p.open) > 0 {
			return true
		}
	}
	return false
}

func (ps *partitions) lost(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, n := range topics[ps.topic] {
		delete(ps.all, n)
	}
}

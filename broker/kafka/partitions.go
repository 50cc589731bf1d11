package kafka

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/broker/intake"
)

// dropTimeout is how long a handler may go on after its context has ended. It is less than rebalanceTimeout, after which
// the brokers give the partition to another member whatever we do.
const (
	rebalanceTimeout = 30 * time.Second
	dropTimeout      = 20 * time.Second
)

// partitions are those of a topic that are ours, and what is done of them. The client commits what is marked.
type partitions struct {
	topic  string
	in     *intake.Intake
	log    *slog.Logger
	client *kgo.Client

	mu  sync.Mutex
	all map[int32]*partition
}

// partition follows the records of one partition. It never holds more of them than are in flight, even if the oldest is
// never done.
type partition struct {
	part *intake.Part
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

// begin follows a record. It returns what the record is a part of, and what to call when it is done.
func (ps *partitions) begin(r *kgo.Record) (*intake.Part, func()) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[r.Partition]
	p.open[r.Offset] = r.LeaderEpoch
	p.next = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
	return p.part, func() {
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
		ps.all[n] = &partition{part: ps.in.Part(), open: make(map[int64]int32)}
	}
	ps.log.Debug("kafka: partitions assigned", "partitions", topics[ps.topic])
}

// revoked gives partitions away. Nothing of them is handled any more when it returns, because the next member begins then,
// and what is done is committed.
func (ps *partitions) revoked(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	ps.drop(topics[ps.topic])
	commit, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = client.CommitMarkedOffsets(commit) // if it fails, what is done comes again
	ps.forget(topics[ps.topic])
}

// lost takes note that partitions are another member's already.
func (ps *partitions) lost(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	ps.drop(topics[ps.topic])
	ps.forget(topics[ps.topic])
}

// drop ends all work on partitions: what was not begun is dropped, handlers at work are cancelled and waited for, all at
// the same time.
func (ps *partitions) drop(numbers []int32) {
	var run sync.WaitGroup
	for _, n := range numbers {
		ps.mu.Lock()
		p := ps.all[n]
		ps.mu.Unlock()
		if p == nil {
			continue
		}
		run.Go(func() {
			if !p.part.Drop(dropTimeout) {
				ps.log.Error("kafka: a handler goes on though its context has ended: another member may handle the same key meanwhile",
					"partition", n, "waited", dropTimeout)
			}
		})
	}
	run.Wait()
	if len(numbers) > 0 {
		ps.log.Debug("kafka: partitions given up", "partitions", numbers)
	}
}

func (ps *partitions) forget(numbers []int32) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, n := range numbers {
		delete(ps.all, n)
	}
}

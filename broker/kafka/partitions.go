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

// dropTimeout is how long a handler may continue after its context has ended. It is shorter than
// rebalanceTimeout, after which the brokers assign the partition to another member in any case.
const (
	rebalanceTimeout = 30 * time.Second
	dropTimeout      = 20 * time.Second
)

// partitions tracks the assigned partitions of a topic and their progress. The client commits the
// offsets that are marked.
type partitions struct {
	topic  string
	in     *intake.Intake
	log    *slog.Logger
	client *kgo.Client

	mu  sync.Mutex
	all map[int32]*partition
}

// partition tracks the records of one partition. Its size is bounded by the records in flight, even
// if the oldest never finishes.
type partition struct {
	part *intake.Part
	open map[int64]int32 // unfinished records: offset → leader epoch that they came from
	next kgo.EpochOffset // after the last record
}

// position returns the offset before which all records are done.
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

// begin starts tracking a record. It returns the record's part, and the function to call when the
// record is done.
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
		if ps.all[r.Partition] == p { // neither lost nor reassigned meanwhile
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

// revoked releases partitions. When it returns, none of their records is being handled, because the
// next member then starts, and finished records are committed.
func (ps *partitions) revoked(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	ps.drop(topics[ps.topic])
	commit, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	_ = client.CommitMarkedOffsets(commit) // on failure, finished records are redelivered
	ps.forget(topics[ps.topic])
}

// lost handles partitions that already belong to another member.
func (ps *partitions) lost(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
	ps.drop(topics[ps.topic])
	ps.forget(topics[ps.topic])
}

// drop stops all work on partitions concurrently: waiting messages are dropped, running handlers
// are cancelled and waited for.
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
				ps.log.Error("kafka: a handler is still running although its context has ended; another member may handle the same key",
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

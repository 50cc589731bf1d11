package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

// BacklogPoint is what a message costs while so many wait.
type BacklogPoint struct {
	Waiting int64   `json:"waiting"`
	Cost    float64 `json:"us_per_message"`
}

// BacklogResult is how the cost of a message depends on the backlog.
type BacklogResult struct {
	Points     []BacklogPoint `json:"points"`
	SlopeRatio float64        `json:"slope_ratio"` // largest cost ÷ smallest
}

const (
	sampleSize = 10_000 // messages read and settled to find the cost of one
	samplePage = 1_000  // messages in one read
	minSamples = 9      // the median of which counts
)

// Backlog measures what it costs to read and settle the first messages of a new feed while more and more wait behind
// them. It works the store's feed directly: a relay reads far ahead, on which the start of its lanes would weigh more than
// what is to be measured.
func Backlog(ctx context.Context, l *Lab) (BacklogResult, error) {
	pool, err := l.pool(ctx, relayConnections)
	if err != nil {
		return BacklogResult{}, err
	}
	defer pool.Close()
	var result BacklogResult
	var filled int64
	for _, waiting := range backlogSizes(int64(l.Messages)) {
		if err := l.fill(ctx, filled, waiting); err != nil {
			return BacklogResult{}, err
		}
		filled = waiting
		cost, err := l.backlogCost(ctx, pool, waiting)
		if err != nil {
			return BacklogResult{}, err
		}
		result.Points = append(result.Points, BacklogPoint{waiting, rounded(cost, 3)})
	}
	byCost := func(a, b BacklogPoint) int { return int(a.Cost*1000) - int(b.Cost*1000) }
	result.SlopeRatio = rounded(quotient(
		slices.MaxFunc(result.Points, byCost).Cost, slices.MinFunc(result.Points, byCost).Cost), 3)
	return result, nil
}

// backlogSizes are the sizes to measure, in ascending order.
func backlogSizes(largest int64) []int64 {
	var sizes []int64
	for _, size := range []int64{10_000, 100_000, 1_000_000} {
		if size < largest {
			sizes = append(sizes, size)
		}
	}
	return append(sizes, largest)
}

// backlogCost is the median cost of a message in microseconds. The first sample finds cold pages, and does not count.
func (l *Lab) backlogCost(ctx context.Context, pool *pgxpool.Pool, waiting int64) (float64, error) {
	var costs []float64
	start := time.Now()
	for n := 0; n <= minSamples || time.Since(start) < l.Phase; n++ {
		l.progressf("%d waiting: sample %d", waiting, n)
		cost, err := l.sample(ctx, pool, fmt.Sprintf("backlog-%d-%d", waiting, n), min(sampleSize, waiting))
		if err != nil {
			return 0, err
		}
		if n > 0 {
			costs = append(costs, cost)
		}
	}
	return median(costs), nil
}

// sample reads and settles the first size messages of a new feed and returns the microseconds a message.
func (l *Lab) sample(ctx context.Context, pool *pgxpool.Pool, name string, size int64) (cost float64, err error) {
	store, err := postgres.New(pool, l.storeConfig())
	if err != nil {
		return 0, err
	}
	feed, err := store.Open(ctx, name, postrider.Member{Name: "bench", Lease: time.Minute, Create: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, feed.Close(context.WithoutCancel(ctx))) }()
	share, err := feed.Balance(ctx)
	if err != nil {
		return 0, err
	}
	var want []postrider.Demand
	for _, shard := range share.Shards {
		want = append(want, postrider.Demand{Shard: shard, Limit: max(1, samplePage/len(share.Shards))})
	}
	start := time.Now()
	var done int64
	for done < size {
		batches, err := feed.Read(ctx, want)
		if err != nil {
			return 0, err
		}
		if len(batches) == 0 {
			return 0, fmt.Errorf("bench: only %d of %d messages could be read", done, size)
		}
		var marks []postrider.Mark
		for i := range batches {
			b := &batches[i]
			done += int64(len(b.Messages))
			marks = append(marks, postrider.Mark{Shard: b.Shard, Batch: b, Done: len(b.Messages)})
		}
		lost, err := feed.Settle(ctx, marks)
		if err != nil {
			return 0, err
		}
		if len(lost) > 0 {
			return 0, fmt.Errorf("bench: %d shards were lost while settling", len(lost))
		}
	}
	return time.Since(start).Seconds() * 1e6 / float64(done), nil
}

// Table implements [Result].
func (r BacklogResult) Table() [][]string {
	rows := make([][]string, 0, len(r.Points)+1)
	for _, p := range r.Points {
		rows = append(rows, []string{count(p.Waiting) + " waiting", strconv.FormatFloat(p.Cost, 'f', 2, 64), "µs a message"})
	}
	return append(rows, []string{"largest ÷ smallest", fraction(r.SlopeRatio), ""})
}

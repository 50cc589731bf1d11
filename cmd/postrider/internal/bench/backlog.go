package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/feeds"
)

// BacklogPoint is the cost of a message with a backlog of Waiting messages.
type BacklogPoint struct {
	Waiting int64   `json:"waiting"`
	Cost    float64 `json:"us_per_message"`
}

// BacklogResult shows how the cost of a message depends on the backlog.
type BacklogResult struct {
	Points     []BacklogPoint `json:"points"`
	SlopeRatio float64        `json:"slope_ratio"`          // largest cost ÷ smallest
	DrainSlope float64        `json:"drain_slope"`          // of the whole backlog: rate of the first tenth ÷ rate of the last
	Longest    float64        `json:"longest_statement_ms"` // of all reads, seen from the client
}

const (
	sampleSize = 10_000 // messages that are read and settled to measure the cost of one
	samplePage = 1_000  // messages in one read
	minSamples = 9      // of which the median counts
)

// Backlog measures the cost of reading and settling the first messages of a new feed with a growing
// backlog, and then the whole backlog. It uses the store's feed directly, because a relay reads far
// ahead, and starting its shards would cost more than what is measured.
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
		cost, longest, err := l.backlogCost(ctx, pool, waiting)
		if err != nil {
			return BacklogResult{}, err
		}
		result.Longest = max(result.Longest, milliseconds(int64(longest)))
		result.Points = append(result.Points, BacklogPoint{waiting, rounded(cost, 3)})
	}
	byCost := func(a, b BacklogPoint) int { return int(a.Cost*1000) - int(b.Cost*1000) }
	result.SlopeRatio = rounded(quotient(
		slices.MaxFunc(result.Points, byCost).Cost, slices.MinFunc(result.Points, byCost).Cost), 3)
	track, err := l.walk(ctx, pool, "backlog-drain", filled, drainPage(filled))
	if err != nil {
		return BacklogResult{}, err
	}
	result.DrainSlope = rounded(track.slope(), 3)
	result.Longest = max(result.Longest, milliseconds(int64(track.longest)))
	return result, nil
}

// drainPage returns the page size of a drain. It is smaller for a short backlog, so that a tenth of
// it takes several reads.
func drainPage(size int64) int { return int(min(max(size/50, 1), samplePage)) }

// backlogSizes returns the sizes to measure, in ascending order.
func backlogSizes(largest int64) []int64 {
	var sizes []int64
	for _, size := range []int64{10_000, 100_000, 1_000_000} {
		if size < largest {
			sizes = append(sizes, size)
		}
	}
	return append(sizes, largest)
}

// backlogCost returns the median cost of a message in microseconds, and the longest read of all
// samples. The first sample warms the cache, and does not count as a cost.
func (l *Lab) backlogCost(ctx context.Context, pool *pgxpool.Pool, waiting int64) (cost float64, longest time.Duration, err error) {
	var costs []float64
	start := time.Now()
	for n := 0; n <= minSamples || time.Since(start) < l.Phase; n++ {
		l.progressf("%d waiting: sample %d", waiting, n)
		track, err := l.walk(ctx, pool, fmt.Sprintf("backlog-%d-%d", waiting, n), min(sampleSize, waiting), samplePage)
		if err != nil {
			return 0, 0, err
		}
		if n > 0 {
			costs = append(costs, track.cost())
		}
		longest = max(longest, track.longest)
	}
	return median(costs), longest, nil
}

// track records the progress of a feed.
type track struct {
	steps   []step
	longest time.Duration // of one read
}

// step is the number of settled messages at a time.
type step struct {
	done int64
	at   time.Duration
}

// cost returns the cost of a message in microseconds.
func (t track) cost() float64 {
	last := t.steps[len(t.steps)-1]
	return quotient(last.at.Seconds()*1e6, float64(last.done))
}

// slope returns the rate of the first tenth of all messages ÷ the rate of the last tenth: above 1
// if it becomes slower.
func (t track) slope() float64 {
	last := t.steps[len(t.steps)-1]
	reach := func(done int64) step {
		i := slices.IndexFunc(t.steps, func(s step) bool { return s.done >= done })
		return t.steps[i]
	}
	first, from := reach((last.done+9)/10), reach(last.done-last.done/10)
	return quotient(perSecond(first.done, first.at), perSecond(last.done-from.done, last.at-from.at))
}

// walk reads and settles the first size messages of a new feed.
func (l *Lab) walk(ctx context.Context, pool *pgxpool.Pool, name string, size int64, page int) (t track, err error) {
	db, err := l.open(pool)
	if err != nil {
		return t, err
	}
	feed, err := db.Feeds().Open(ctx, name, feeds.Member{Name: "bench", Lease: time.Minute, Create: true})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, feed.Close(context.WithoutCancel(ctx))) }()
	share, err := feed.Balance(ctx)
	if err != nil {
		return t, err
	}
	progress := l.delivering(name)
	start := time.Now()
	var done int64
	for shards := share.Shards; done < size; {
		asked := time.Now()
		batches, err := feed.Read(ctx, demands(shards, page))
		if err != nil {
			return t, err
		}
		t.longest = max(t.longest, time.Since(asked))
		if len(batches) == 0 {
			if len(shards) == len(share.Shards) {
				return t, fmt.Errorf("bench: only %d of %d messages could be read", done, size)
			}
			shards = share.Shards
			continue
		}
		// Shards end at different times. Divide the page among the rest, or the last messages would
		// be read in small pages.
		shards = nil
		var marks []feeds.Mark
		for i := range batches {
			b := &batches[i]
			done += int64(len(b.Messages))
			marks = append(marks, feeds.Mark{Shard: b.Shard, Batch: b, Done: len(b.Messages)})
			shards = append(shards, b.Shard)
		}
		lost, err := feed.Settle(ctx, marks)
		if err != nil {
			return t, err
		}
		if len(lost) > 0 {
			return t, fmt.Errorf("bench: %d shards were lost while settling", len(lost))
		}
		t.steps = append(t.steps, step{done, time.Since(start)})
		progress(done, size)
	}
	return t, nil
}

// demands divides a page among the shards.
func demands(shards []int, page int) []feeds.Demand {
	want := make([]feeds.Demand, len(shards))
	for i, shard := range shards {
		want[i] = feeds.Demand{Shard: shard, Limit: max(1, page/len(shards))}
	}
	return want
}

// Table implements [Result].
func (r BacklogResult) Table() [][]string {
	rows := make([][]string, 0, len(r.Points)+3)
	for _, p := range r.Points {
		rows = append(rows, []string{count(p.Waiting) + " waiting", strconv.FormatFloat(p.Cost, 'f', 2, 64), "µs a message"})
	}
	return append(rows,
		[]string{"largest ÷ smallest", fraction(r.SlopeRatio), ""},
		[]string{"all of it: rate of the first tenth ÷ of the last", fraction(r.DrainSlope), ""},
		[]string{"longest read", millis(r.Longest), "ms"})
}

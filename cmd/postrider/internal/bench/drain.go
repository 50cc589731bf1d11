package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
)

// DrainResult is the delivery rate of a backlog.
type DrainResult struct {
	PerSecond           float64 `json:"per_second"`
	BareSelectPerSecond float64 `json:"bare_select_per_second"`
	Ratio               float64 `json:"ratio"`
	Undelivered         int64   `json:"undelivered"`
}

// Drain measures how fast a backlog reaches the sink, compared with a bare SELECT of the same
// columns of the same rows. Each round drains the whole backlog for a new feed. Rates are medians.
func Drain(ctx context.Context, l *Lab) (DrainResult, error) {
	if err := l.fill(ctx, 0, int64(l.Messages)); err != nil {
		return DrainResult{}, err
	}
	var drained, bare []float64
	var undelivered int64
	selectAll := func() error {
		l.Progress("bare SELECT")
		rate, err := l.bareSelect(ctx)
		bare = append(bare, rate)
		return err
	}
	for start, round := time.Now(), 1; round <= l.Rounds || time.Since(start) < l.Phase; round++ {
		if err := selectAll(); err != nil {
			return DrainResult{}, err
		}
		rate, missing, err := l.drainTo(ctx, fmt.Sprintf("drain%d", round), discard.New())
		if err != nil {
			return DrainResult{}, err
		}
		drained = append(drained, rate)
		undelivered += missing
	}
	if err := selectAll(); err != nil {
		return DrainResult{}, err
	}
	return DrainResult{
		PerSecond:           rounded(median(drained), 1),
		BareSelectPerSecond: rounded(median(bare), 1),
		Ratio:               rounded(quotient(median(drained), median(bare)), 4),
		Undelivered:         undelivered,
	}, nil
}

// drainTo delivers the backlog to a new feed, and measures from the start of the relay to the last
// confirmation.
func (l *Lab) drainTo(ctx context.Context, feed string, to postrider.Publisher) (rate float64, missing int64, err error) {
	b := newBook()
	b.reserve(int64(l.Messages))
	return l.drainBacklog(ctx, feed, witness{to, b}, b)
}

// drainBacklog is drainTo with a publisher that records confirmations in the book.
func (l *Lab) drainBacklog(ctx context.Context, feed string, to postrider.Publisher, b *book) (rate float64, missing int64, err error) {
	total := int64(l.Messages)
	began := b.now()
	relay, err := l.carry(ctx, feed, to)
	if err != nil {
		return 0, 0, err
	}
	err = b.await(ctx, total, l.delivering(feed))
	rate = perSecond(b.delivered.Load(), time.Duration(b.last.Load()-began))
	if halted := relay.halt(); err == nil {
		err = halted
	}
	return rate, total - b.delivered.Load(), err
}

// selectMessages selects what a relay needs of a message, in any order.
const selectMessages = `SELECT seq, id, type, aggregate_type, aggregate_id, key, topic, routing_key, tenant_id, content_type,
  schema_version, schema_id, dedup_key, correlation_id, causation_id, coalesce(occurred_at, created_at), headers, payload
FROM @schema@.messages`

// bareSelect reads the rows into memory in the fastest way: on one connection, as binary values,
// with one allocation per row. It returns rows per second.
func (l *Lab) bareSelect(ctx context.Context) (float64, error) {
	conn, err := l.admin.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	start := time.Now()
	reader := conn.Conn().PgConn().ExecParams(ctx, l.in(selectMessages), nil, nil, nil, []int16{1})
	var rows int64
	var kept [4096][]byte // as many as a relay buffers
	for reader.NextRow() {
		values := reader.Values()
		size := 0
		for _, v := range values {
			size += len(v)
		}
		row := make([]byte, 0, size)
		for _, v := range values {
			row = append(row, v...)
		}
		kept[rows%int64(len(kept))] = row
		rows++
	}
	_, err = reader.Close()
	elapsed := time.Since(start)
	runtime.KeepAlive(&kept)
	return perSecond(rows, elapsed), err
}

// Table implements [Result].
func (r DrainResult) Table() [][]string {
	return [][]string{
		{"backlog through the relay", whole(r.PerSecond), "messages/s"},
		{"bare SELECT of the same rows", whole(r.BareSelectPerSecond), "rows/s"},
		{"ratio", fraction(r.Ratio), ""},
		{"not delivered", count(r.Undelivered), "messages"},
	}
}

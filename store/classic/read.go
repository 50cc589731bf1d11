package classic

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

// readBytes is about how much one read returns; what is left is read next time.
const readBytes = 32 << 20

// ask is what a read wants of one shard.
type ask struct {
	postrider.Demand
	lane  *lane
	known map[string]bool // rows to be left out: nobody but the reader changes it
	rows  []string        // that wait, in order
	more  bool            // there are others behind them
}

// Read implements [postrider.Feed]. First come the IDs of what waits, out of the index, then the messages of those that were not
// handed out before. Rows are found by their status and never by a position behind which there could be nothing: a transaction
// that has drawn a low number may commit late.
func (f *feed) Read(ctx context.Context, want []postrider.Demand) ([]postrider.Batch, error) {
	asks, closed := f.asks(want)
	if closed {
		return nil, errClosed
	}
	if len(asks) == 0 {
		return nil, ctx.Err()
	}
	if err := f.find(ctx, asks); err != nil {
		return nil, fmt.Errorf("classic: read: %w", err)
	}
	records, err := f.bodies(ctx, asks)
	if err != nil {
		return nil, fmt.Errorf("classic: read: %w", err)
	}
	return f.handOut(asks, records), nil
}

// asks returns what is wanted of shards that are held, beginning with another one each time.
func (f *feed) asks(want []postrider.Demand) (asks []*ask, closed bool) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range want {
		if l := f.lanes[d.Shard]; l != nil && d.Limit > 0 && l.worthReading(d.Limit, now) {
			l.read = now
			l.refresh()
			asks = append(asks, &ask{Demand: d, lane: l, known: l.known})
		}
	}
	if len(asks) > 0 {
		f.turn = (f.turn + 1) % len(asks)
		asks = append(asks[f.turn:], asks[:f.turn]...)
	}
	return asks, f.closed
}

// find fills in the rows that wait.
func (f *feed) find(ctx context.Context, asks []*ask) error {
	if f.t.layout.State.Processing != "" {
		return f.claim(ctx, asks)
	}
	byShard := make(map[int]*ask)
	for _, a := range asks {
		byShard[a.Shard] = a
	}
	err := f.waiting(asks).each(ctx, f.store.db, func(scan func(...any) error) error {
		var rowID string
		var shard int
		if err := scan(&rowID, &shard); err != nil {
			return err
		}
		if a := byShard[shard]; a != nil && !a.known[rowID] {
			a.rows = append(a.rows, rowID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, a := range asks {
		if f.t.layout.native { // MySQL does not promise to keep the order of what it puts together
			slices.SortFunc(a.rows, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		}
		if a.more = len(a.rows) > a.Limit; a.more {
			a.rows = a.rows[:a.Limit]
		}
	}
	return nil
}

// waiting selects the ID and the shard of what waits: with what was handed out before, and one more than is wanted.
func (f *feed) waiting(asks []*ask) *stmt {
	t := f.t
	if !t.layout.native {
		return t.adopted(f.name, asks, "", 0)
	}
	// Old statistics could make a server prefer the primary key for the order, and walk past all that was delivered.
	s, index, order := t.cfg.stmt(), "", t.order[0]+" + 0" // which only the index of what waits has
	if t.cfg.Dialect == MySQL {
		index, order = " FORCE INDEX ("+t.quote(t.cfg.Prefix+"outbox_waiting")+")", t.order[0]
	}
	for i, a := range asks {
		if i > 0 {
			s.sql(" UNION ALL ")
		}
		s.sql("(SELECT ", t.rowID, ", ", strconv.Itoa(a.Shard), " FROM ", t.name, index, " WHERE ", t.wait, " AND shard = ", strconv.Itoa(a.Shard),
			" ORDER BY ", order, " LIMIT ").number(int64(a.Limit + len(a.known) + 1)).sql(")")
	}
	return s
}

// adopted selects what waits in a table that was adopted, for all shards in one order, and more columns.
func (t *table) adopted(feed string, asks []*ask, more string, reserve int) *stmt {
	limit := reserve + 1
	shards := make([]int, len(asks))
	for i, a := range asks {
		shards[i] = a.Shard
		limit += a.Limit + len(a.known)
	}
	s := t.cfg.stmt("SELECT ", t.rowID, ", ", t.shard, more, " FROM ", t.name, " WHERE ", t.wait)
	if len(shards) < t.shards {
		s.sql(" AND ").numbers(t.shard, "integer", shards)
	}
	return s.sql(" AND NOT EXISTS (SELECT 1 FROM {aside} a WHERE a.feed = ").word(feed).sql(" AND a.row_id = ", t.outerRowID(), ") ORDER BY ",
		strings.Join(t.order, ", "), " LIMIT ").number(int64(limit))
}

// bodies reads the messages. It ends early when they are large; asks then have fewer rows.
func (f *feed) bodies(ctx context.Context, asks []*ask) (map[string]record, error) {
	all := make(map[string]record)
	f.mu.Lock()
	size := max(f.size, 1<<10)
	f.mu.Unlock()
	bytes := 0
	for start := 0; ; {
		var ids []string
		end := start + max(readBytes/size, 1)
		n := 0
		for _, a := range asks {
			for _, id := range a.rows {
				if n >= start && n < end {
					ids = append(ids, id)
				}
				n++
			}
		}
		found, err := f.t.loadIf(ctx, f.store.db, ids, f.t.wait)
		if err != nil {
			return nil, err
		}
		got := 0
		for id, r := range found {
			all[id] = r
			got += len(r.Payload) + 1<<10
		}
		bytes += got
		if len(found) > 0 {
			size = max(got/len(found), size/2)
		}
		if start = min(end, n); start == n || bytes >= readBytes {
			f.mu.Lock()
			f.size = size
			f.mu.Unlock()
			cut(asks, start)
			return all, nil
		}
	}
}

// cut leaves the first n rows to the asks.
func cut(asks []*ask, n int) {
	for _, a := range asks {
		if n < len(a.rows) {
			a.rows, a.more = a.rows[:n], true
		}
		n -= len(a.rows)
	}
}

// handOut makes batches of what was read, except of shards that were lost meanwhile.
func (f *feed) handOut(asks []*ask, records map[string]record) []postrider.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	var batches []postrider.Batch
	for _, a := range asks {
		if f.lanes[a.Shard] != a.lane {
			continue
		}
		var found []record
		for _, id := range a.rows {
			if r, ok := records[id]; ok {
				found = append(found, r)
			}
		}
		if len(found) == 0 {
			continue
		}
		b := postrider.Batch{Shard: a.Shard, More: a.more, Cursor: a.lane.hand(found), Messages: make([]postrider.Message, len(found))}
		for i := range found {
			b.Messages[i] = found[i].Message
		}
		batches = append(batches, b)
	}
	return batches
}

package table

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// readBytes is about how much one read returns; what is left is read next time.
const readBytes = 32 << 20

// ask is what a read wants of one shard.
type ask struct {
	feeds.Demand
	shard *ownedShard
	known map[string]bool // rows to be left out: nobody but the reader changes it
	rows  []string        // that wait, in order
	more  bool            // there are others behind them

	looked, next int  // rows that were looked at, and how many come next
	found, bytes int  // of these, with their payloads
	full         bool // no more of them fit
}

// Read implements [feeds.Feed]. First come the IDs of what waits, out of the index, then the messages of those that were not
// handed out before. Rows are found by their status and never by a position behind which there could be nothing: a transaction
// that has drawn a low number may commit late.
func (f *feed) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	asks, closed := f.asks(want)
	if closed {
		return nil, errClosed
	}
	if len(asks) == 0 {
		return nil, ctx.Err()
	}
	if err := f.applyManualChanges(ctx, shardsOf(asks)); err != nil {
		return nil, fmt.Errorf("table: rows changed by hand: %w", err)
	}
	if err := f.find(ctx, asks); err != nil {
		return nil, fmt.Errorf("table: read: %w", err)
	}
	records, err := f.bodies(ctx, asks)
	if err != nil {
		return nil, fmt.Errorf("table: read: %w", err)
	}
	if err := f.refuse(ctx, asks, records); err != nil {
		return nil, fmt.Errorf("table: read: %w", err)
	}
	return f.handOut(asks, records), nil
}

// refuse defers as dead what is beyond the limits of the core, and takes it from the records. Others write to the table, and one
// row of theirs must not stop its shard: a key that is too long could not be recorded as blocked, so these block nothing.
func (f *feed) refuse(ctx context.Context, asks []*ask, records map[string]record) error {
	var shards []int
	var all []setting
	for _, a := range asks {
		for _, id := range a.rows {
			r, ok := records[id]
			if !ok {
				continue
			}
			if err := r.Validate(); err != nil {
				delete(records, id)
				shards = append(shards, a.Shard)
				all = append(all, setting{
					Deferral: &feeds.Deferral{Batch: &feeds.Batch{Shard: a.Shard}, Index: len(all), Status: feeds.StatusDead, Cause: err.Error()},
					inFlight: inFlight{rowID: r.rowID, seq: r.seq, priority: r.Priority, enqueued: r.enqueued},
				})
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return f.owning(ctx, shards, func(tx *sql.Tx) error { return f.writeDeferrals(ctx, tx, slices.Clone(all)) })
}

// asks returns what is wanted of shards that are held, beginning with another one each time.
func (f *feed) asks(want []feeds.Demand) (asks []*ask, closed bool) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range want {
		if l := f.owned[d.Shard]; l != nil && d.Limit > 0 && l.worthReading(d.Limit, now) {
			l.read = now
			l.refresh()
			asks = append(asks, &ask{Demand: d, shard: l, known: l.known})
		}
	}
	if len(asks) > 0 {
		f.turn = (f.turn + 1) % len(asks)
		asks = append(asks[f.turn:], asks[:f.turn]...)
	}
	return asks, f.closed
}

func shardsOf(asks []*ask) []int {
	shards := make([]int, len(asks))
	for i, a := range asks {
		shards[i] = a.Shard
	}
	return shards
}

// find fills in the rows that wait.
func (f *feed) find(ctx context.Context, asks []*ask) error {
	if !f.t.layout.native {
		return f.claim(ctx, asks)
	}
	byShard := make(map[int]*ask)
	for _, a := range asks {
		byShard[a.Shard] = a
	}
	err := f.waiting(asks).Each(ctx, f.store.db, func(scan func(...any) error) error {
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
		// MySQL does not promise to keep the order of what it puts together.
		slices.SortFunc(a.rows, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		if a.more = len(a.rows) > a.Limit; a.more {
			a.rows = a.rows[:a.Limit]
		}
	}
	return nil
}

// waiting selects the ID and the shard of what waits in the table of our own: with what was handed out before, and one more than is
// wanted.
func (f *feed) waiting(asks []*ask) *sqltext.Stmt {
	t := f.t
	// Old statistics could make a server prefer the primary key for the order, and walk past all that was delivered.
	s, index, order := t.cfg.stmt(), "", t.order[0]+" + 0" // which only the index of what waits has
	if t.cfg.Dialect == sqltext.MySQL {
		index, order = " FORCE INDEX ("+t.quote(t.cfg.Prefix+"outbox_waiting")+")", t.order[0]
	}
	for i, a := range asks {
		if i > 0 {
			s.SQL(" UNION ALL ")
		}
		s.SQL("(SELECT ", t.rowID, ", ", strconv.Itoa(a.Shard), " FROM ", t.name, index, " WHERE ", t.wait, " AND shard = ", strconv.Itoa(a.Shard)).Add(filtered(t, &t.cfg.Only)).SQL(
			" ORDER BY ", order, " LIMIT ").Number(int64(a.Limit + len(a.known) + 1)).SQL(")")
	}
	return s
}

// adopted selects what waits in a table that was adopted, for all shards in one order, with the keys.
func (f *feed) adopted(asks []*ask) *sqltext.Stmt {
	t := f.t
	limit := claimReserve + 1
	for _, a := range asks {
		limit += a.Limit + len(a.known)
	}
	return t.cfg.stmt().Add(firstWaiting(&served{t: t, name: f.name, only: t.cfg.Only}, int64(limit), func(s *sqltext.Stmt) {
		if len(asks) < t.shards {
			s.SQL(" AND ").Numbers(t.shard, "integer", shardsOf(asks))
		}
	}, t.rowID, t.shard, t.key))
}

// bodies reads the messages that fit into the budgets of the asks, and at least one. Asks of which more wait then have fewer rows.
func (f *feed) bodies(ctx context.Context, asks []*ask) (map[string]record, error) {
	all := make(map[string]record)
	f.mu.Lock()
	size := f.size
	f.mu.Unlock()
	if size == 0 {
		size = 64 << 10 // nothing is known yet
	}
	budget := readBytes
	for _, a := range asks {
		if a.Bytes > 0 {
			budget = min(budget, a.Bytes)
		}
	}
	for total := 0; total < readBytes; {
		ids := nextRows(asks, max(readBytes/size, 1))
		if len(ids) == 0 {
			break
		}
		found, err := f.t.loadBrief(ctx, f.store.db, ids, f.t.wait, budget)
		if err != nil {
			return nil, err
		}
		got := 0
		for _, r := range found {
			got += r.bytes + 1<<10
		}
		if len(found) > 0 {
			size = max(got/len(found), size/2, 1<<10)
		}
		fit := make(map[string]record)
		for _, a := range asks {
			total += a.take(found, fit, readBytes-total, len(all) == 0)
		}
		if err := f.t.complete(ctx, f.store.db, fit); err != nil {
			return nil, err
		}
		maps.Copy(all, fit)
	}
	for _, a := range asks {
		if a.looked < len(a.rows) {
			a.rows, a.more = a.rows[:a.looked], true
		}
	}
	f.mu.Lock()
	f.size = size
	f.mu.Unlock()
	return all, nil
}

// nextRows returns up to n rows that were not looked at yet.
func nextRows(asks []*ask, n int) (ids []string) {
	for _, a := range asks {
		if a.next = 0; !a.full {
			a.next = min(len(a.rows)-a.looked, n-len(ids))
			ids = append(ids, a.rows[a.looked:a.looked+a.next]...)
		}
	}
	return ids
}

// take moves to fit what was found of the ask's next rows, as far as its budget goes and what is left of the read's. It returns how
// many bytes that are. The first of the ask, and of all asks, fits in any case.
func (a *ask) take(found, fit map[string]record, left int, first bool) (bytes int) {
	for _, id := range a.rows[a.looked : a.looked+a.next] {
		if r, ok := found[id]; ok {
			over := bytes+r.bytes > left && !(first && len(fit) == 0)
			if a.full = over || a.Bytes > 0 && a.bytes+r.bytes > a.Bytes && a.found > 0; a.full {
				return bytes
			}
			fit[id] = r
			bytes += r.bytes
			a.bytes += r.bytes
			a.found++
		}
		a.looked++
	}
	return bytes
}

// handOut makes batches of what was read, except of shards that were lost meanwhile.
func (f *feed) handOut(asks []*ask, records map[string]record) []feeds.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	var batches []feeds.Batch
	for _, a := range asks {
		for _, id := range a.rows { // what is left was claimed, and comes with the next read
			delete(a.shard.claimed, id)
		}
		if f.owned[a.Shard] != a.shard {
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
		b := feeds.Batch{Shard: a.Shard, More: a.more, Cursor: a.shard.hand(found), Messages: make([]postrider.Message, len(found))}
		for i := range found {
			b.Messages[i] = found[i].Message
		}
		batches = append(batches, b)
	}
	return batches
}

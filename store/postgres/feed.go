package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

// feed is one relay process's membership of a feed.
type feed struct {
	pool   *pgxpool.Pool
	cfg    Config
	name   string
	member postrider.Member
	id     postrider.ID

	reading sync.Mutex // held over a read
	writing sync.Mutex // held over a write to the ledger: its answers must be applied in their order

	mu         sync.Mutex // guards what follows; never held over a statement
	lanes      map[int]*lane
	floor      floor
	generation string // the server's, when the lanes were loaded; empty: load them first
	unsure     bool   // a write to the ledger may or may not have happened
}

// lane is a shard that this member holds.
type lane struct {
	n         int64  // number of the newest ledger row, which is ours
	read      cursor // everything up to here has been handed out
	settled   cursor // as the ledger has it
	pages     int    // handed out so far
	lastPage  int    // how many messages the last read found
	settledNo int    // the newest page that was settled in part or whole,
	settledIn int    // how much of it,
	caughtUp  bool   // and whether that is everything handed out
	crashes   int    // holders in a row that died without progress
	slice
}

func newFeed(pool *pgxpool.Pool, cfg Config, name string, member postrider.Member) *feed {
	return &feed{pool: pool, cfg: cfg, name: name, member: member, id: postrider.NewID(), lanes: map[int]*lane{}}
}

// Balance implements [postrider.Feed].
func (f *feed) Balance(ctx context.Context) (postrider.Share, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.balance(ctx)
}

func (f *feed) balance(ctx context.Context) (postrider.Share, error) {
	share, held, generation, err := f.askBalance(ctx)
	if err != nil {
		return postrider.Share{}, fmt.Errorf("postgres: balance: %w", f.noteReset(err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation != "" && f.generation != generation {
		f.reset()
		return postrider.Share{}, fmt.Errorf("postgres: balance: the server has recovered from a crash: %w", postrider.ErrReset)
	}
	for shard, l := range f.lanes {
		row, ok := held[shard]
		switch {
		case ok && row.n == l.n:
		case ok && row.n == l.n+1 && f.unsure: // added by a settle whose answer was lost
			l.n = row.n
		default: // somebody else has had it since, even if it is ours again: what we know of it is out of date
			delete(f.lanes, shard)
			if ok {
				delete(held, shard)
			}
		}
	}
	f.generation, f.unsure = generation, false
	for shard, row := range held {
		if f.lanes[shard] == nil {
			f.lanes[shard] = &lane{n: row.n, read: row.at, settled: row.at, caughtUp: true, crashes: row.crashes, slice: row.slice}
		}
		share.Shards = append(share.Shards, shard)
		if row.tenant != "" {
			share.Slices = append(share.Slices, postrider.Slice{Shard: shard, Base: row.base, Tenant: row.tenant})
		}
		if f.lanes[shard].crashes >= 1 {
			share.Orphans = append(share.Orphans, shard)
		}
		if f.lanes[shard].crashes >= 2 {
			share.Suspects = append(share.Suspects, shard)
		}
	}
	slices.Sort(share.Shards)
	slices.Sort(share.Orphans)
	slices.Sort(share.Suspects)
	return share, nil
}

// Read implements [postrider.Feed]. All shards are read in one statement, except that shards far behind are shared out
// between two, so that the server prepares one answer while the other is taken in.
func (f *feed) Read(ctx context.Context, want []postrider.Demand) ([]postrider.Batch, error) {
	f.reading.Lock()
	defer f.reading.Unlock()

	f.mu.Lock()
	takeID, candidate := f.floor.beforeRead()
	safe, generation := f.floor.safe, f.generation
	requests := f.requests(want, takeID)
	f.mu.Unlock()
	if len(requests) == 0 {
		return nil, nil
	}

	results, err := askAll(ctx, f.pool, f.cfg, requests)
	if err != nil {
		return nil, fmt.Errorf("postgres: read: %w", f.noteReset(err))
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation != generation {
		return nil, fmt.Errorf("postgres: read: %w", postrider.ErrReset)
	}
	for _, result := range results {
		if result.generation != generation {
			f.reset()
			return nil, fmt.Errorf("postgres: read: the server has recovered from a crash: %w", postrider.ErrReset)
		}
	}
	f.floor.afterRead(takeID, candidate)
	var batches []postrider.Batch
	for i, result := range results {
		f.floor.saw(result.highest)
		for j, d := range requests[i].demands {
			l := requests[i].lanes[j]
			if f.lanes[d.Shard] != l {
				continue // lost while we read
			}
			batch := l.take(d.Shard, &result.shards[j], l.read.opened(result.snapshot, safe))
			if len(batch.Messages) > 0 {
				batches = append(batches, batch)
			}
		}
	}
	return batches, nil
}

// requests turns the demands into one statement, or two when several shards are inside a window. The caller holds mu.
func (f *feed) requests(want []postrider.Demand, takeID bool) []*readRequest {
	behind := 0
	for _, d := range want {
		if l, ok := f.lanes[d.Shard]; ok && l.read.s2 != "" {
			behind++
		}
	}
	requests := []*readRequest{newReadRequest(len(want), takeID)}
	if behind > 1 {
		requests = append(requests, newReadRequest(len(want), takeID))
	}
	n := 0
	for _, d := range want {
		if l, ok := f.lanes[d.Shard]; ok && d.Limit > 0 {
			requests[n%len(requests)].add(d, l)
			n++
		}
	}
	return requests[:min(n, len(requests))]
}

// take turns what was read of a shard into a batch and moves the lane's cursor behind it.
func (l *lane) take(shard int, got *shardRows, window cursor) postrider.Batch {
	p := &page{lane: l, start: window, end: window.closed(), seqs: got.seqs}
	batch := postrider.Batch{Shard: shard, Messages: got.messages, Cursor: p}
	if got.bound != noCut {
		p.end = window.at(got.bound)
		batch.More = true
	}
	l.read = p.end
	l.lastPage = len(got.seqs)
	if len(got.seqs) > 0 {
		l.pages++
		p.no = l.pages
		l.caughtUp = false
	}
	return batch
}

// Settle implements [postrider.Feed].
func (f *feed) Settle(ctx context.Context, marks []postrider.Mark) ([]int, error) {
	return f.settle(ctx, marks, false)
}

// Release implements [postrider.Feed].
func (f *feed) Release(ctx context.Context, marks []postrider.Mark) error {
	_, err := f.settle(ctx, marks, true)
	return err
}

func (f *feed) settle(ctx context.Context, marks []postrider.Mark, release bool) (lost []int, err error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	unsure := f.unsure
	f.mu.Unlock()
	if unsure {
		if _, err := f.balance(ctx); err != nil {
			return nil, err
		}
	}

	f.mu.Lock()
	entry := ledgerEntry{generation: f.generation, release: release}
	for _, m := range marks {
		l, ok := f.lanes[m.Shard]
		if !ok {
			lost = append(lost, m.Shard)
			continue
		}
		entry.add(m.Shard, l, l.move(m))
	}
	f.mu.Unlock()
	if len(entry.shards) == 0 {
		return lost, nil
	}

	kept, err := f.askSettle(ctx, &entry)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.unsure = true
		return nil, fmt.Errorf("postgres: settle: %w", f.noteResetLocked(err))
	}
	for i, shard := range entry.shards {
		l := entry.lanes[i]
		if !kept[shard] {
			lost = append(lost, shard)
			delete(f.lanes, shard)
			continue
		}
		l.n = entry.n[i]
		l.settled = entry.at[i]
		if release {
			delete(f.lanes, shard)
		}
	}
	return lost, nil
}

// move returns where a mark puts the settled position, which never goes back.
func (l *lane) move(m postrider.Mark) cursor {
	at := l.settled
	if m.Batch != nil {
		p, ok := m.Batch.Cursor.(*page)
		if ok && p.lane == l && (p.no > l.settledNo || p.no == l.settledNo && m.Done > l.settledIn) {
			l.settledNo, l.settledIn = p.no, m.Done
			l.caughtUp = p.no == l.pages && m.Done >= len(p.seqs)
			at = p.position(m.Done)
			l.crashes = 0
			l.settled = at // also if this write fails: the next one makes up for it
		}
	}
	if l.caughtUp {
		at = l.read // reads that found nothing have moved it further than any batch could
	}
	return at
}

// Close implements [postrider.Feed].
func (f *feed) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err := f.exec(ctx, "SELECT @schema@.leave_feed($1, $2)", f.name, f.id.String())
	if err != nil {
		return fmt.Errorf("postgres: close: %w", explain(err))
	}
	return nil
}

// reset forgets everything that was learned from a server that has crashed since. The caller holds mu.
func (f *feed) reset() {
	f.lanes = map[int]*lane{}
	f.floor = floor{}
	f.generation = ""
	f.unsure = false
}

func (f *feed) noteReset(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.noteResetLocked(err)
}

func (f *feed) noteResetLocked(err error) error {
	err = explain(err)
	if isReset(err) {
		f.reset()
	}
	return err
}

func leaseText(d time.Duration) string { return fmt.Sprintf("%d milliseconds", d.Milliseconds()) }

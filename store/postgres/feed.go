package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// feed is the membership of one relay process in a feed.
type feed struct {
	pool   committed
	cfg    Config
	name   string
	member feeds.Member
	id     postrider.ID

	reading sync.Mutex // held during a read
	writing sync.Mutex // held during a write to the ledger, so that the answers are applied in order

	mu         sync.Mutex // guards the fields below; never held during a statement
	owned      map[int]*ownedShard
	floor      floor
	generation string // of the server, when the shards were loaded; empty: not loaded yet
	shards     int    // of the feed
	stop       *stop  // the position up to which shards are read, or nil for no limit
	idle       *idle  // nil: another read may find something
	unsure     bool   // a write to the ledger may or may not have happened
}

// idle is a state in which there is nothing to read. It ends when a number is drawn, or when a
// transaction ends that may have messages.
type idle struct {
	drawn  int64
	before []uint64 // transactions that may have messages up to that number
}

// shard is a shard that this member owns, or the slice of a shard that belongs to one tenant.
type ownedShard struct {
	n         int64  // number of its newest ledger row, which this member wrote
	read      cursor // everything up to here has been handed out
	settled   cursor // the position in the ledger
	pages     int    // how many were handed out
	lastPage  int    // how many messages the last read found
	settledNo int    // the newest page that was settled, in part or in whole
	settledIn int    // how much of that page was settled
	caughtUp  bool   // everything handed out is settled
	crashes   int    // owners in a row that disappeared without progress
	term      int64  // number of the ledger row by which this member took the shard
	taken     time.Time
	sent      time.Time // when the oldest attempt began to send a message beyond settled; zero if there is none, or none before taken
	slice
}

func newFeed(pool committed, cfg Config, name string, member feeds.Member) *feed {
	return &feed{pool: pool, cfg: cfg, name: name, member: member, id: postrider.NewID(), owned: map[int]*ownedShard{}}
}

// Balance implements [feeds.Feed].
func (f *feed) Balance(ctx context.Context) (feeds.Share, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.balance(ctx)
}

func (f *feed) balance(ctx context.Context) (feeds.Share, error) {
	f.mu.Lock()
	joins := f.generation == ""
	f.mu.Unlock()
	var first drawn
	if joins { // with a floor, the second window need not start where the first one did
		var err error
		if first, err = askDrawn(ctx, f.pool.Pool, f.cfg); err != nil {
			return feeds.Share{}, fmt.Errorf("postgres: balance: %w", f.noteReset(err))
		}
	}
	asked := time.Now()
	share, state, err := f.askBalance(ctx)
	if err != nil {
		return feeds.Share{}, fmt.Errorf("postgres: balance: %w", f.noteReset(err))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation != "" && f.generation != state.generation {
		f.reset()
		return feeds.Share{}, fmt.Errorf("postgres: balance: the server has recovered from a crash: %w", feeds.ErrReset)
	}
	for shard, l := range f.owned {
		row, ok := state.held[shard]
		switch {
		case ok && row.n == l.n:
		case ok && row.n == l.n+1 && f.unsure: // written by a settle whose answer was lost
			l.n = row.n
		default: // another member owned it in between, so our state is stale even if we own it again
			delete(f.owned, shard)
			if ok {
				delete(state.held, shard)
			}
		}
	}
	if joins && first.generation == state.generation {
		f.floor.saw(first.seq)
		f.floor.afterRead(true, first.seq)
	}
	f.generation, f.shards, f.stop, f.unsure = state.generation, state.shards, state.stop, false
	if f.stop != nil {
		f.idle = nil
	}
	share.Terms, share.Unsure = map[int]int64{}, map[int]time.Duration{}
	for shard, row := range state.held {
		if f.owned[shard] == nil {
			f.idle = nil
			f.owned[shard] = &ownedShard{
				n: row.n, read: row.at, settled: row.at, caughtUp: true, crashes: row.crashes, term: row.n,
				taken: asked, sent: row.unsure, slice: row.slice,
			}
		}
		share.Terms[shard] = f.owned[shard].term
		if !row.unsure.IsZero() {
			share.Unsure[shard] = time.Since(row.unsure)
		}
		share.Shards = append(share.Shards, shard)
		if f.owned[shard].hasStopped(f.stop) {
			share.Stopped = append(share.Stopped, shard)
		}
		if row.tenant != "" {
			share.Slices = append(share.Slices, feeds.Slice{Shard: shard, Base: row.base, Tenant: row.tenant})
		}
		if f.owned[shard].crashes >= 1 {
			share.Orphans = append(share.Orphans, shard)
		}
		if f.owned[shard].crashes >= 2 {
			share.Suspects = append(share.Suspects, shard)
		}
	}
	slices.Sort(share.Shards)
	slices.Sort(share.Orphans)
	slices.Sort(share.Suspects)
	return share, nil
}

// Read implements [feeds.Feed]. It reads all shards in one statement, and those at the same
// position in one scan.
func (f *feed) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	for empty := 1; ; empty++ {
		batches, more, err := f.read(ctx, want)
		if err != nil || !more || empty == mostEmpty || slices.ContainsFunc(batches, func(b feeds.Batch) bool { return len(b.Messages) > 0 }) {
			return batches, err
		}
	}
}

// mostEmpty bounds how many times Read repeats a read that looked at messages but found none for
// the requested shards.
const mostEmpty = 20

// read makes one request. It reports more if it did not reach the end of what its snapshot sees.
func (f *feed) read(ctx context.Context, want []feeds.Demand) (batches []feeds.Batch, more bool, err error) {
	f.mu.Lock()
	takeID, candidate := f.floor.beforeRead()
	safe, generation, idle := f.floor.safe, f.generation, f.idle
	request := newReadRequest(f.name, planScans(want, f.owned, f.shards, f.stop), f.shards, takeID)
	f.mu.Unlock()
	if len(request.scans) == 0 {
		return nil, false, nil
	}
	if idle != nil && !takeID {
		if still, err := f.isStill(ctx, idle); err != nil || still {
			return nil, false, err
		}
	}

	result, err := request.ask(ctx, f.pool, f.cfg)
	if err != nil {
		return nil, false, fmt.Errorf("postgres: read: %w", f.noteReset(err))
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation != generation {
		return nil, false, fmt.Errorf("postgres: read: %w", feeds.ErrReset)
	}
	if result.generation != generation {
		f.reset()
		return nil, false, fmt.Errorf("postgres: read: the server has recovered from a crash: %w", feeds.ErrReset)
	}
	f.floor.afterRead(takeID, candidate)
	batches, more = f.accept(request, result, safe)
	return batches, more, nil
}

// accept moves the shards behind what was read. safe is the floor of the read's snapshot. It reports
// more if the read did not reach the end of what the snapshot sees. The caller holds mu.
func (f *feed) accept(request *readRequest, result *readResult, safe int64) (batches []feeds.Batch, more bool) {
	f.floor.saw(result.drawn)
	to := newPoint(result.snapshot, safe, points(request.scans))
	for i, s := range request.scans {
		got := &result.scans[i]
		window := s.at.opened(to, got.began, result.hi)
		for j, l := range s.owned {
			if shard := s.demands[j].Shard; f.owned[shard] == l { // otherwise it was lost during the read
				batch := l.take(shard, &got.shards[j], window)
				more = more || batch.More
				if len(batch.Messages) > 0 || batch.More {
					batches = append(batches, batch)
				}
			}
		}
	}
	f.idle = nil
	if f.stop == nil { // before a stop, shards must advance to it even if they find no messages
		f.idle = f.passed(result.drawn)
	}
	return batches, more
}

// passed returns the idle state if the shards have passed every message up to drawn, except those of
// in-flight transactions, and nil otherwise. The caller holds mu.
func (f *feed) passed(drawn int64) *idle {
	i := &idle{drawn: drawn}
	for _, l := range f.owned {
		if l.read.inside() || l.read.from.lo < drawn {
			return nil
		}
		i.before = append(i.before, l.read.from.openBefore(drawn)...)
	}
	slices.Sort(i.before)
	i.before = slices.Compact(i.before)
	return i
}

// isStill reports whether there is still nothing to read, whatever else has happened on the server.
// It costs a fraction of a read. It does not detect a crash of the server; Balance does.
func (f *feed) isStill(ctx context.Context, i *idle) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	var drawn *int64
	var snapshot string
	err := f.pool.QueryRow(ctx, f.cfg.in("SELECT pg_sequence_last_value('@schema@.message_seq'), pg_current_snapshot()::text"),
		pgx.QueryExecModeExec).Scan(&drawn, &snapshot)
	if err != nil {
		return false, fmt.Errorf("postgres: read: %w", f.noteReset(err))
	}
	return i.holds(value(drawn), snapshot), nil
}

func (i *idle) holds(drawn int64, snapshot string) bool {
	open := inFlight(snapshot)
	return drawn == i.drawn && !slices.ContainsFunc(i.before, func(xid uint64) bool { return !slices.Contains(open, xid) })
}

// hasStopped reports whether everything before a stop has been handed out.
func (l *ownedShard) hasStopped(at *stop) bool {
	return at != nil && !l.read.inside() && l.read.from.snapshot == at.snapshot
}

// approach opens the window that ends at a stop, if the shard stands between two windows.
func (l *ownedShard) approach(at *stop) {
	if at != nil && !l.read.inside() {
		l.read = l.read.opened(at.point, l.read.from.began(&at.point), at.hi)
	}
}

// take turns what was read of a shard into a batch and moves the shard's cursor behind it.
func (l *ownedShard) take(shard int, got *shardRows, window cursor) feeds.Batch {
	p := &page{shard: l, start: window, end: window.closed(), seqs: got.seqs}
	batch := feeds.Batch{Shard: shard, Messages: got.messages, Deferred: got.deferred, Cursor: p}
	// The end of a window that was open before this read says nothing about messages behind it.
	batch.More = l.read.inside()
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

// Settle implements [feeds.Feed].
func (f *feed) Settle(ctx context.Context, marks []feeds.Mark) ([]int, error) {
	return f.settle(ctx, marks, false)
}

// Release implements [feeds.Feed].
func (f *feed) Release(ctx context.Context, marks []feeds.Mark) error {
	_, err := f.settle(ctx, marks, true)
	return err
}

func (f *feed) settle(ctx context.Context, marks []feeds.Mark, release bool) (lost []int, err error) {
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
		l, ok := f.owned[m.Shard]
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
		l := entry.owned[i]
		if !kept[shard] {
			lost = append(lost, shard)
			delete(f.owned, shard)
			continue
		}
		l.n = entry.n[i]
		l.settled = entry.at[i]
		if release {
			delete(f.owned, shard)
		}
	}
	return lost, nil
}

// move returns the settled position after a mark. The position never goes back.
func (l *ownedShard) move(m feeds.Mark) cursor {
	at := l.settled
	var p *page
	if m.Batch != nil {
		p, _ = m.Batch.Cursor.(*page)
	}
	switch {
	case m.Batch == nil:
		l.sent = m.Sent
	case p == nil || p.shard != l: // read before the shard was lost: it says nothing of what was sent since
		if l.sent.IsZero() {
			l.sent = l.taken
		}
	default:
		l.sent = m.Sent
		if p.no > l.settledNo || p.no == l.settledNo && m.Done > l.settledIn {
			l.settledNo, l.settledIn = p.no, m.Done
			l.caughtUp = p.no == l.pages && m.Done >= len(p.seqs)
			at = p.position(m.Done)
			l.crashes = 0
			l.settled = at // even if this write fails: the next one includes it
		}
	}
	if l.caughtUp {
		at = l.read // reads that found nothing have advanced it beyond the last batch
	}
	return at
}

// Close implements [feeds.Feed].
func (f *feed) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	err := f.exec(ctx, "SELECT @schema@.leave_feed($1, $2)", f.name, f.id.String())
	if err != nil {
		return fmt.Errorf("postgres: close: %w", explain(err))
	}
	return nil
}

// reset discards everything that was learned from a server that has crashed since. The caller holds
// mu.
func (f *feed) reset() {
	f.owned = map[int]*ownedShard{}
	f.floor = floor{}
	f.generation = ""
	f.idle = nil
	f.stop = nil
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
	if errors.Is(err, feeds.ErrForeign) {
		err = fmt.Errorf("%w; to send from here, run: postrider rebase %s", err, f.cfg.CommandFlags)
	}
	return err
}

func leaseText(d time.Duration) string { return fmt.Sprintf("%d milliseconds", d.Milliseconds()) }

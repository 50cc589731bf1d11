package postgres

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// TestCursor simulates a server and readers. Transactions take their ID early, draw numbers, and
// commit late or not at all. Readers stop, start again and change the number of shards. Every
// committed message must be read exactly once, and those of a key in order.
func TestCursor(t *testing.T) {
	t.Parallel()
	for n := range 400 {
		seed := rand.Uint64()
		if err := playCursor(seed); err != nil {
			t.Fatalf("run %d, seed %d: %v", n, seed, err)
		}
	}
}

const mostPlayedShards = 6

// played simulates what a cursor sees of a server.
type played struct {
	*rand.Rand
	xid, completed uint64 // the newest transaction ID, and the highest one that has completed
	seq            int64
	open           []*playedTx
	rows           []playedRow // in order of seq
	locked         map[int]bool
	want           map[int64]bool // numbers of committed messages
}

type playedTx struct {
	xid  uint64
	keys []int
	rows []playedRow
}

type playedRow struct {
	seq int64
	xid uint64
	key int
}

func (p *played) newXID() uint64 {
	p.xid++
	return p.xid
}

func (p *played) complete(xid uint64) { p.completed = max(p.completed, xid) }

// step lets a writer take one step.
func (p *played) step() {
	if len(p.open) == 0 || len(p.open) < 6 && p.IntN(3) == 0 {
		p.open = append(p.open, &playedTx{xid: p.newXID()})
		return
	}
	i := p.IntN(len(p.open))
	tx := p.open[i]
	if p.IntN(3) > 0 {
		key := p.IntN(12)
		if p.locked[key] && !slices.Contains(tx.keys, key) {
			return // it would have to wait
		}
		p.locked[key] = true
		tx.keys = append(tx.keys, key)
		for range 1 + p.IntN(4) {
			p.seq++
			tx.rows = append(tx.rows, playedRow{p.seq, tx.xid, key})
		}
		return
	}
	p.end(i, p.IntN(5) > 0)
}

func (p *played) end(i int, commit bool) {
	tx := p.open[i]
	p.open = slices.Delete(p.open, i, i+1)
	for _, key := range tx.keys {
		delete(p.locked, key)
	}
	p.complete(tx.xid)
	if !commit {
		return
	}
	for _, r := range tx.rows {
		p.want[r.seq] = true
	}
	p.rows = append(p.rows, tx.rows...)
	slices.SortFunc(p.rows, func(a, b playedRow) int { return int(a.seq - b.seq) })
}

// snapshot returns what PostgreSQL would: it does not list in-flight transactions whose ID is not
// below xmax.
func (p *played) snapshot() string {
	xmax := p.completed + 1
	var list []string
	xmin := xmax
	slices.SortFunc(p.open, func(a, b *playedTx) int { return int(a.xid) - int(b.xid) })
	for _, tx := range p.open {
		if tx.xid < xmax {
			xmin = min(xmin, tx.xid)
			list = append(list, fmt.Sprint(tx.xid))
		}
	}
	return fmt.Sprintf("%d:%d:%s", xmin, xmax, strings.Join(list, ","))
}

func sees(snapshot string, xid uint64) bool {
	return xid < xmaxOf(snapshot) && !slices.Contains(inFlight(snapshot), xid)
}

// ask simulates read_log.
func (p *played) ask(r *readRequest) *readResult {
	result := &readResult{snapshot: p.snapshot(), drawn: p.seq, hi: p.seq + int64(p.IntN(2)*p.IntN(32))}
	for _, s := range r.scans {
		got := scanned{began: s.at.last, shards: make([]shardRows, len(s.owned))}
		from, to, top := s.at.from, s.at.to.snapshot, s.upto
		if !s.at.inside() {
			to, top, got.began = result.snapshot, result.hi, from.lo
			for i, xid := range from.inFlight {
				if sees(result.snapshot, xid) {
					got.began = min(got.began, from.starts[i])
				}
			}
		}
		if got.began+int64(s.look) < top {
			got.reached = got.began + int64(s.look)
			top = got.reached
		}
		for _, row := range p.rows {
			j, ok := s.byBase[playedShard(row.key, r.shards)]
			if row.seq > got.began && row.seq <= top && !sees(from.snapshot, row.xid) && sees(to, row.xid) && ok {
				l := &got.shards[j]
				l.seqs = append(l.seqs, row.seq)
				l.messages = append(l.messages, postrider.Message{Key: fmt.Sprint(row.key), Payload: make([]byte, 1)})
			}
		}
		result.scans = append(result.scans, got)
	}
	r.cut(result)
	if r.takeID {
		p.complete(p.newXID())
	}
	return result
}

func playedShard(key, shards int) int {
	h := fnv.New32()
	fmt.Fprint(h, key)
	return int(h.Sum32()) % shards
}

// move simulates advance_move: shards stop at the latest point that one of them has reached, and a
// new number of shards begins there.
func (p *played) move(f *feed) {
	if f.stop == nil {
		if p.IntN(30) > 0 {
			return
		}
		var at []point
		for _, l := range f.owned {
			at = append(at, l.read.from)
			if l.read.inside() {
				at[len(at)-1] = l.read.to
			}
		}
		latest := slices.MaxFunc(at, func(a, b point) int {
			return cmp.Or(cmp.Compare(xmaxOf(a.snapshot), xmaxOf(b.snapshot)), cmp.Compare(len(b.inFlight), len(a.inFlight)))
		})
		f.stop = &stop{storedPoint(latest.snapshot, latest.lo, latest.starts), p.seq}
	}
	for _, l := range f.owned {
		if !l.hasStopped(f.stop) {
			return
		}
	}
	f.begin(1+p.IntN(mostPlayedShards), f.stop.point)
}

func (f *feed) begin(shards int, at point) {
	f.owned, f.shards, f.stop = map[int]*ownedShard{}, shards, nil
	for shard := range shards {
		f.owned[shard] = &ownedShard{read: cursor{from: at}, slice: slice{base: shard}}
	}
}

func xmaxOf(snapshot string) (xmax uint64) {
	_, _ = fmt.Sscanf(snapshot, "%d:%d:", new(uint64), &xmax)
	return xmax
}

func playCursor(seed uint64) error {
	p := &played{Rand: rand.New(rand.NewPCG(seed, 0)), xid: 10, completed: 10, locked: map[int]bool{}, want: map[int64]bool{}}
	f := &feed{}
	f.begin(4, storedPoint("1:1:", 0, nil))
	got := map[int64]bool{}
	last := map[string]int64{}
	for step, empty := 0, 0; empty < 12; step++ {
		writing := step < 150
		if writing {
			for range p.IntN(6) {
				p.step()
			}
		} else if len(p.open) > 0 {
			p.end(p.IntN(len(p.open)), p.IntN(5) > 0)
		}
		if p.IntN(40) == 0 { // another process takes over from the ledger
			f.floor = floor{}
			for _, l := range f.owned {
				c := &l.read
				c.from = storedPoint(c.from.snapshot, c.from.lo, c.from.starts)
				if c.inside() {
					c.to = storedPoint(c.to.snapshot, c.to.lo, c.to.starts)
				}
			}
		}
		var want []feeds.Demand
		p.move(f)
		for shard := range f.shards {
			if !writing || p.IntN(4) > 0 {
				want = append(want, feeds.Demand{Shard: shard, Limit: 1 + p.IntN(20), Bytes: p.IntN(2) * (1 + p.IntN(20))})
			}
		}
		takeID, candidate := f.floor.beforeRead()
		takeID = takeID && p.IntN(3) > 0
		safe := f.floor.safe
		request := newReadRequest("feed", planScans(want, f.owned, f.shards, f.stop), f.shards, takeID)
		if len(request.scans) == 0 {
			continue
		}
		if writing && p.IntN(2) == 0 {
			p.step() // between what the reader knows and what it asks for
		}
		if f.idle != nil && !takeID && f.idle.holds(p.seq, p.snapshot()) { // as read does
			for seq := range p.want {
				if !got[seq] {
					return fmt.Errorf("%d is there, and nothing is read", seq)
				}
			}
			if empty++; writing || len(p.open) > 0 {
				empty = 0
			}
			continue
		}
		result := p.ask(request)
		f.floor.afterRead(takeID, candidate)
		batches, more := f.accept(request, result, safe)
		for _, b := range batches {
			for i, seq := range b.Cursor.(*page).seqs {
				key := b.Messages[i].Key
				switch {
				case got[seq]:
					return fmt.Errorf("%d was read twice", seq)
				case !p.want[seq]:
					return fmt.Errorf("%d was read and never committed", seq)
				case seq < last[key]:
					return fmt.Errorf("%d of key %s was read after %d", seq, key, last[key])
				}
				got[seq], last[key] = true, seq
			}
		}
		if empty++; len(batches) > 0 || more || f.stop != nil || writing || len(p.open) > 0 {
			empty = 0
		}
		if step > 5000 {
			return fmt.Errorf("no end: %d of %d were read", len(got), len(p.want))
		}
	}
	if len(got) != len(p.want) {
		return fmt.Errorf("%d of %d were read", len(got), len(p.want))
	}
	return nil
}

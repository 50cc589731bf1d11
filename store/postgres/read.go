package postgres

import (
	"context"
	"errors"
	"math"
	"sort"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

// inflightLimit bounds how much of one transaction that was in flight a single read returns.
const inflightLimit = 2000

// noCut is the cut of a read that left nothing out.
const noCut = math.MaxInt64

// readRequest asks for the next page of several shards, in one statement.
type readRequest struct {
	demands []postrider.Demand
	lanes   []*lane
	index   map[int]int // from shard to its place in the slices above
	takeID  bool

	shards, bases, tenants, others, limits, s1, lo, s2, last array
}

// readResult is what one snapshot had to offer.
type readResult struct {
	snapshot   string
	generation string
	highest    int64       // sequence number
	cut        int64       // up to here nothing was left out by inflightLimit
	shards     []shardRows // in the order of the request
}

// shardRows are the rows of one shard. Those of transactions that were in flight come first and all lie at or below the
// floor, the others above it.
type shardRows struct {
	seqs     []int64
	messages []postrider.Message
	above    int // how many of them lie above the floor
}

// Len, Less and Swap order the rows of transactions that were in flight.
func (s *shardRows) Len() int           { return len(s.seqs) - s.above }
func (s *shardRows) Less(i, j int) bool { return s.seqs[i] < s.seqs[j] }
func (s *shardRows) Swap(i, j int) {
	s.seqs[i], s.seqs[j] = s.seqs[j], s.seqs[i]
	s.messages[i], s.messages[j] = s.messages[j], s.messages[i]
}

func newReadRequest(size int, takeID bool) *readRequest {
	return &readRequest{index: make(map[int]int, size), takeID: takeID}
}

func (r *readRequest) add(d postrider.Demand, l *lane) {
	r.index[d.Shard] = len(r.lanes)
	r.demands = append(r.demands, d)
	r.lanes = append(r.lanes, l)
	r.shards.int(int64(d.Shard))
	r.bases.int(int64(l.base))
	r.tenants.string(l.tenant)
	r.others.string(l.others)
	r.limits.int(int64(d.Limit))
	l.read.appendTo(&r.s1, &r.lo, &r.s2, &r.last)
}

// ask speaks to the server below the driver's row scanning, which would cost more than all the rest of a read.
func (r *readRequest) ask(ctx context.Context, pool *pgxpool.Pool, cfg Config) (*readResult, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()

	binary := []int16{1}
	reader := conn.Conn().PgConn().ExecParams(ctx,
		cfg.in("SELECT * FROM @schema@.read_log($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"),
		[][]byte{
			strconv.AppendBool(nil, r.takeID), strconv.AppendInt(nil, inflightLimit, 10),
			[]byte(r.shards.String()), []byte(r.bases.String()), []byte(r.tenants.String()), []byte(r.others.String()),
			[]byte(r.limits.String()), []byte(r.s1.String()), []byte(r.lo.String()),
			[]byte(r.s2.String()), []byte(r.last.String()),
		}, nil, nil, binary)
	result := &readResult{shards: make([]shardRows, len(r.lanes)), cut: noCut}
	var dec decoder
	var xid, run int64 // rows of one in-flight transaction come together
	for reader.NextRow() {
		row := reader.Values()
		switch branch := dec.int16(row[0]); branch {
		case 0:
			result.snapshot, result.generation = string(row[5]), string(row[6])
			continue
		case 2:
			if x := dec.int64(row[2]); x != xid {
				xid, run = x, 0
			}
			if run++; run == inflightLimit {
				result.cut = min(result.cut, dec.int64(row[3]))
			}
			r.collect(result, &dec, row, false)
		default:
			r.collect(result, &dec, row, true)
		}
	}
	if _, err := reader.Close(); err != nil {
		return nil, err
	}
	return result, dec.err
}

func (r *readRequest) collect(result *readResult, dec *decoder, row [][]byte, above bool) {
	i := r.index[int(dec.int16(row[1]))]
	got := &result.shards[i]
	if got.seqs == nil {
		// As many as last time, for a shard far behind is read in full pages.
		size := min(max(r.lanes[i].lastPage, 8), r.demands[i].Limit)
		got.seqs, got.messages = make([]int64, 0, size), make([]postrider.Message, 0, size)
	}
	seq := dec.int64(row[3])
	got.seqs = append(got.seqs, seq)
	got.messages = append(got.messages, postrider.Message{})
	dec.message(row[4:], &got.messages[len(got.messages)-1])
	result.highest = max(result.highest, seq)
	if above {
		got.above++
	}
}

// cutAt leaves only the rows up to which nothing was left out in between, in delivery order, and returns where that ends:
// noCut when these are all rows of the window.
func (s *shardRows) cutAt(limit int, cut int64) (bound int64) {
	if s.Len() > 1 {
		sort.Sort(s)
	}
	bound = cut
	if s.above >= limit {
		bound = min(bound, s.seqs[len(s.seqs)-1])
	}
	// What lies behind the bound is read again, together with what was left out there.
	end := len(s.seqs)
	for end > 0 && s.seqs[end-1] > bound {
		end--
	}
	s.seqs, s.messages = s.seqs[:end], s.messages[:end]
	return bound
}

// askAll asks for all requests at once.
func askAll(ctx context.Context, pool *pgxpool.Pool, cfg Config, requests []*readRequest) ([]*readResult, error) {
	results := make([]*readResult, len(requests))
	errs := make([]error, len(requests))
	var others sync.WaitGroup
	for i, r := range requests[1:] {
		others.Go(func() { results[i+1], errs[i+1] = r.ask(ctx, pool, cfg) })
	}
	results[0], errs[0] = requests[0].ask(ctx, pool, cfg)
	others.Wait()
	return results, errors.Join(errs...)
}

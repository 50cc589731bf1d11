package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

const (
	// inflightLimit bounds how much of one transaction that was in flight a single read returns.
	inflightLimit = 2000
	// smallPayload is what a payload may always have to come with its row, whatever the budget.
	smallPayload = 1 << 10
)

// noCut is the cut of a read that left nothing out.
const noCut = math.MaxInt64

// readRequest asks for the next page of several shards, in one statement.
type readRequest struct {
	demands []postrider.Demand
	lanes   []*lane
	index   map[int]int // from shard to its place in the slices above
	takeID  bool
	small   int // larger payloads are asked for when it is known which of them fit

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

// shardRows are the rows of one shard, of which large payloads may not be there yet. Those of transactions that were in flight come first and all lie at or below the
// floor, the others above it.
type shardRows struct {
	seqs     []int64
	messages []postrider.Message
	above    int           // how many of them lie above the floor
	missing  map[int64]int // by seq: the bytes of payloads that are not there yet
	bound    int64         // up to here nothing was left out
}

// Len, Less and Swap order the rows of transactions that were in flight.
func (s *shardRows) Len() int           { return len(s.seqs) - s.above }
func (s *shardRows) Less(i, j int) bool { return s.seqs[i] < s.seqs[j] }
func (s *shardRows) Swap(i, j int) {
	s.seqs[i], s.seqs[j] = s.seqs[j], s.seqs[i]
	s.messages[i], s.messages[j] = s.messages[j], s.messages[i]
}

func newReadRequest(size int, takeID bool) *readRequest {
	return &readRequest{index: make(map[int]int, size), takeID: takeID, small: math.MaxInt32}
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
	if d.Bytes > 0 {
		r.small = min(r.small, max(d.Bytes/d.Limit, smallPayload))
	}
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
		cfg.in("SELECT * FROM @schema@.read_log($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"),
		[][]byte{
			strconv.AppendBool(nil, r.takeID), strconv.AppendInt(nil, inflightLimit, 10), strconv.AppendInt(nil, int64(r.small), 10),
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
	if dec.err != nil {
		return nil, dec.err
	}
	for i := range result.shards {
		result.shards[i].cutAt(r.demands[i], r.cutOf(i, result.cut))
	}
	return result, r.complete(ctx, conn.Conn().PgConn(), cfg, result)
}

// cutOf returns where rows of transactions that were in flight were cut, for one shard. One that has passed all of these has
// asked for none, and one that has come further than the cut does not go back.
func (r *readRequest) cutOf(i int, cut int64) int64 {
	at := &r.lanes[i].read
	if at.last >= at.lo {
		return noCut
	}
	return max(cut, at.last)
}

// complete asks for the payloads that were too large to come with their rows.
func (r *readRequest) complete(ctx context.Context, conn *pgconn.PgConn, cfg Config, result *readResult) error {
	var bases, seqs array
	wanted := make(map[int64]*[]byte)
	for i := range result.shards {
		got := &result.shards[i]
		for j, seq := range got.seqs {
			if _, ok := got.missing[seq]; ok {
				bases.int(int64(r.lanes[i].base))
				seqs.int(seq)
				wanted[seq] = &got.messages[j].Payload
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	reader := conn.ExecParams(ctx, cfg.in("SELECT * FROM @schema@.read_payloads($1, $2)"),
		[][]byte{[]byte(bases.String()), []byte(seqs.String())}, nil, nil, []int16{1})
	var dec decoder
	for reader.NextRow() {
		row := reader.Values()
		seq := dec.int64(row[0])
		if to := wanted[seq]; to != nil {
			*to = bytes.Clone(row[1])
			delete(wanted, seq)
		}
	}
	if _, err := reader.Close(); err != nil {
		return err
	}
	if len(wanted) > 0 {
		return fmt.Errorf("%d payloads are not in the log any more", len(wanted))
	}
	return dec.err
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
	if row[23] != nil {
		if got.missing == nil {
			got.missing = make(map[int64]int)
		}
		got.missing[seq] = int(dec.int32(row[23]))
	}
	result.highest = max(result.highest, seq)
	if above {
		got.above++
	}
}

// cutAt leaves only the rows up to which nothing was left out in between, in delivery order, and that fit into the budget. It
// notes where that ends: noCut when these are all rows of the window.
func (s *shardRows) cutAt(d postrider.Demand, cut int64) {
	if s.Len() > 1 {
		sort.Sort(s)
	}
	s.bound = cut
	if s.above >= d.Limit {
		s.bound = min(s.bound, s.seqs[len(s.seqs)-1])
	}
	sum := 0
	for i, seq := range s.seqs {
		if sum += len(s.messages[i].Payload) + s.missing[seq]; d.Bytes > 0 && sum > d.Bytes && i > 0 {
			s.bound = min(s.bound, s.seqs[i-1])
			break
		}
	}
	// What lies behind the bound is read again, together with what was left out there.
	end := len(s.seqs)
	for end > 0 && s.seqs[end-1] > s.bound {
		end--
	}
	s.seqs, s.messages = s.seqs[:end], s.messages[:end]
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

package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
)

// inflightLimit bounds how much of one transaction that was in flight a single read returns.
const inflightLimit = 2000

// noCut is the cut of a read that left nothing out.
const noCut = math.MaxInt64

// readRequest asks for the next page of several shards, in one statement.
type readRequest struct {
	demands   []postrider.Demand
	lanes     []*lane
	index     map[int]int // from shard to its place in the slices above
	takeID    bool
	candidate int64

	shards, limits, s1, lo, s2, last array
}

// readResult is what one snapshot had to offer.
type readResult struct {
	snapshot   string
	generation string
	highest    int64       // sequence number
	cut        int64       // up to here nothing was left out by inflightLimit
	shards     []shardRows // in the order of the request
}

// shardRows are the rows of one shard. Those of transactions that were in flight all lie at or below the floor, the
// others above it.
type shardRows struct {
	rows  []logRow
	above int // how many of them lie above the floor
}

type logRow struct {
	seq     int64
	message postrider.Message
}

func newReadRequest(size int) *readRequest {
	return &readRequest{index: make(map[int]int, size)}
}

func (r *readRequest) add(d postrider.Demand, l *lane) {
	r.index[d.Shard] = len(r.lanes)
	r.demands = append(r.demands, d)
	r.lanes = append(r.lanes, l)
	r.shards.int(int64(d.Shard))
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
		cfg.in("SELECT * FROM @schema@.read_log($1, $2, $3, $4, $5, $6, $7, $8)"),
		[][]byte{
			strconv.AppendBool(nil, r.takeID), strconv.AppendInt(nil, inflightLimit, 10),
			[]byte(r.shards.String()), []byte(r.limits.String()), []byte(r.s1.String()), []byte(r.lo.String()),
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
	got := &result.shards[r.index[int(dec.int16(row[1]))]]
	if got.rows == nil {
		got.rows = make([]logRow, 0, 16)
	}
	got.rows = append(got.rows, logRow{})
	l := &got.rows[len(got.rows)-1]
	l.seq = dec.int64(row[3])
	dec.message(row[4:], &l.message)
	result.highest = max(result.highest, l.seq)
	if above {
		got.above++
	}
}

// merge returns the rows in delivery order, as far as nothing was left out in between, and where that ends: noCut when
// these are all rows of the window.
func (s *shardRows) merge(limit int, cut int64) (rows []logRow, bound int64) {
	below := len(s.rows) - s.above
	slices.SortFunc(s.rows[:below], func(a, b logRow) int { return cmp.Compare(a.seq, b.seq) })
	bound = cut
	if s.above >= limit {
		bound = min(bound, s.rows[len(s.rows)-1].seq)
	}
	// What lies behind the bound is read again, together with what was left out there.
	end := len(s.rows)
	for end > 0 && s.rows[end-1].seq > bound {
		end--
	}
	return s.rows[:end], bound
}

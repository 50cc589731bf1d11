package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// smallPayload is the size up to which a payload always comes with its row, whatever the budget.
const smallPayload = 1 << 10

// noCut is the bound of a shard whose rows were all returned.
const noCut = math.MaxInt64

// readRequest asks for the next pages of several scans, in one statement.
type readRequest struct {
	feed   string
	scans  []*scan
	shards int // of the feed
	takeID bool
	small  int // payloads above this size are requested separately, once it is known which of them fit
}

// readResult is what one snapshot returned.
type readResult struct {
	snapshot   string
	generation string
	drawn      int64 // a number that the sequence has drawn
	hi         int64 // the snapshot sees nothing above it
	scans      []scanned
}

// scanned is what one scan found.
type scanned struct {
	began   int64       // all messages lie above it
	reached int64       // the last number that was looked at, or 0 if the scan reached its end
	shards  []shardRows // in the order of the scan's shards
}

// shardRows are the rows of one shard in order. Large payloads may still be missing.
type shardRows struct {
	seqs     []int64
	messages []postrider.Message
	missing  map[int64]int // sizes of the missing payloads, by seq
	deferred []int         // indexes of those that are deferred already
	bound    int64         // up to here, every message was returned
}

func newReadRequest(feed string, scans []*scan, shards int, takeID bool) *readRequest {
	r := &readRequest{feed: feed, scans: scans, shards: shards, takeID: takeID, small: math.MaxInt32}
	for _, s := range scans {
		for _, d := range s.demands {
			if d.Bytes > 0 {
				r.small = min(r.small, max(d.Bytes/d.Limit, smallPayload))
			}
		}
	}
	return r
}

// ask bypasses the driver's row scanning, which would cost more than the rest of a read.
func (r *readRequest) ask(ctx context.Context, pool committed, cfg Config) (*readResult, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	end, err := pool.begin(ctx, conn)
	if err != nil {
		return nil, err
	}
	defer end()

	var args scanArguments
	result := &readResult{scans: make([]scanned, len(r.scans))}
	for i, s := range r.scans {
		s.appendTo(&args)
		result.scans[i].shards = make([]shardRows, len(s.owned))
	}
	reader := conn.Conn().PgConn().ExecParams(ctx,
		cfg.in("SELECT * FROM @schema@.read_log($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"),
		append([][]byte{strconv.AppendBool(nil, r.takeID), strconv.AppendInt(nil, int64(r.small), 10), strconv.AppendInt(nil, int64(r.shards), 10)}, args.values()...), nil, nil, []int16{1})
	var dec decoder
	for reader.NextRow() {
		r.collect(result, &dec, reader.Values())
	}
	if _, err := reader.Close(); err != nil {
		return nil, err
	}
	if dec.err != nil {
		return nil, dec.err
	}
	r.cut(result)
	if err := r.markDeferred(ctx, conn.Conn().PgConn(), cfg, result); err != nil {
		return nil, err
	}
	return result, r.complete(ctx, conn.Conn().PgConn(), cfg, result)
}

// cut drops the rows that exceed the demands, and sets the bound of each shard.
func (r *readRequest) cut(result *readResult) {
	for i, s := range r.scans {
		got := &result.scans[i]
		end := int64(noCut)
		switch {
		case got.reached > 0:
			end = got.reached
		case s.at.inside() && s.upto < s.at.hi:
			end = s.upto
		}
		for j := range got.shards {
			got.shards[j].cutAt(s.demands[j], end)
		}
	}
}

// Columns of read_log.
const (
	columnScan = iota
	columnSnapshot
	columnGeneration
	columnDrawn
	columnHi
	columnBegan
	columnReached
	columnShard
	columnSeq
	columnMessage                      // the first column of the message
	columnBytes   = columnMessage + 19 // the column after the last one of the message
)

func (r *readRequest) collect(result *readResult, dec *decoder, row [][]byte) {
	i := int(dec.int32(row[columnScan])) - 1
	s, got := r.scans[i], &result.scans[i]
	if row[columnSeq] == nil {
		result.snapshot, result.generation = string(row[columnSnapshot]), string(row[columnGeneration])
		result.drawn, result.hi = dec.int64(row[columnDrawn]), dec.int64(row[columnHi])
		got.began = dec.int64(row[columnBegan])
		if row[columnReached] != nil {
			got.reached = dec.int64(row[columnReached])
		}
		return
	}
	seq := dec.int64(row[columnSeq])
	j := s.byBase[int(dec.int16(row[columnShard]))]
	rows := &got.shards[j]
	if rows.seqs == nil {
		// Expect as many as last time: a shard that is far behind is read in full pages.
		size := min(max(s.owned[j].lastPage, 8), s.demands[j].Limit)
		rows.seqs, rows.messages = make([]int64, 0, size), make([]postrider.Message, 0, size)
	}
	rows.seqs = append(rows.seqs, seq)
	rows.messages = append(rows.messages, postrider.Message{})
	dec.message(row[columnMessage:], &rows.messages[len(rows.messages)-1])
	if row[columnBytes] != nil {
		if rows.missing == nil {
			rows.missing = make(map[int64]int)
		}
		rows.missing[seq] = int(dec.int32(row[columnBytes]))
	}
}

// cutAt keeps only the rows that were asked for and that fit into the budget. It sets bound, which
// is noCut if these are all rows of the window.
func (s *shardRows) cutAt(d feeds.Demand, end int64) {
	s.bound = end
	sum, keep := 0, len(s.seqs)
	for i, seq := range s.seqs {
		sum += len(s.messages[i].Payload) + s.missing[seq]
		if i >= d.Limit || d.Bytes > 0 && sum > d.Bytes && i > 0 {
			s.bound, keep = s.seqs[i-1], i
			break
		}
	}
	s.seqs, s.messages = s.seqs[:keep], s.messages[:keep]
}

// markDeferred finds the messages that are deferred already, for the shards whose demand asks for it.
func (r *readRequest) markDeferred(ctx context.Context, conn *pgconn.PgConn, cfg Config, result *readResult) error {
	type place struct {
		rows  *shardRows
		index int
	}
	var seqs array
	places := make(map[int64]place)
	for i, s := range r.scans {
		for j := range s.demands {
			if !s.demands[j].Doubt {
				continue
			}
			rows := &result.scans[i].shards[j]
			for k, seq := range rows.seqs {
				seqs.int(seq)
				places[seq] = place{rows, k}
			}
		}
	}
	if len(places) == 0 {
		return nil
	}
	reader := conn.ExecParams(ctx, cfg.in("SELECT seq FROM @schema@.deferred WHERE feed = $1 AND seq = ANY ($2::bigint[]) ORDER BY seq"),
		[][]byte{[]byte(r.feed), []byte(seqs.String())}, nil, nil, []int16{1})
	var dec decoder
	for reader.NextRow() {
		if at := places[dec.int64(reader.Values()[0])]; at.rows != nil {
			at.rows.deferred = append(at.rows.deferred, at.index)
		}
	}
	if _, err := reader.Close(); err != nil {
		return err
	}
	return dec.err
}

// complete fetches the payloads that were too large to come with their rows.
func (r *readRequest) complete(ctx context.Context, conn *pgconn.PgConn, cfg Config, result *readResult) error {
	var seqs array
	wanted := make(map[int64]*[]byte)
	for i := range result.scans {
		for j := range result.scans[i].shards {
			got := &result.scans[i].shards[j]
			for k, seq := range got.seqs {
				if _, ok := got.missing[seq]; ok {
					seqs.int(seq)
					wanted[seq] = &got.messages[k].Payload
				}
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	reader := conn.ExecParams(ctx, cfg.in("SELECT * FROM @schema@.read_payloads($1)"), [][]byte{[]byte(seqs.String())}, nil, nil, []int16{1})
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

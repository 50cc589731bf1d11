package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// session is an idempotent producer that one Publish at a time owns. After a failure it is never
// reused: it is closed, and the next session has its own producer ID and connections.
type session struct {
	client  *kgo.Client
	probe   func(context.Context) error
	line    *line
	packet  codec.Packet
	arena   []byte // memory for the keys and headers of the records
	records []kgo.Record
	indexes []int // index of each record's message in the call

	unlined atomic.Int64   // records without a partition that have not failed
	lined   chan struct{}  // closed when there are none
	left    sync.WaitGroup // records without an outcome
	failed  atomic.Bool
	errs    map[*kgo.Record]error // failures; complete when left is zero
	flushed bool

	sender *sender // publishes in transactions; nil if the session does not
	term   int64
	ended  error // why it is unknown whether the transaction was committed
}

// newSession creates a producer. It does not connect.
func (p *Publisher) newSession(more ...kgo.Opt) (s *session, err error) {
	s = &session{probe: p.cfg.probe, line: &line{dial: p.cfg.dial}, errs: make(map[*kgo.Record]error)}
	s.client, err = p.cfg.client(s.line.open, append(more,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.StopProducerOnDataLossDetected(), // a broken sequence has an unknown outcome; do not continue after it
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(p.partitioner)),
		kgo.WithHooks(s),
		kgo.ManualFlushing(),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1<<24),
		kgo.ProducerBatchMaxBytes(int32(p.cfg.MaxBytes)),
		kgo.ProducerBatchCompression(compressions[p.cfg.Compression]),
		kgo.ProduceRequestTimeout(10*time.Second),
		// Limits retries of answers such as NOT_LEADER_FOR_PARTITION, each with a metadata refresh
		// in between. Keep them few, because other topics of the call wait meanwhile; the relay
		// retries for longer.
		kgo.RecordRetries(6),
		kgo.UnknownTopicRetries(3), // a broker may not know a new topic yet
		kgo.ConnIdleTimeout(5*time.Minute),
	)...)
	return s, err
}

// add adds the packet as a record of the next send. The index is that of its message in the call.
func (s *session) add(index int) {
	n, p := len(s.records), &s.packet
	if n == cap(s.records) {
		s.records = append(s.records, kgo.Record{})
	}
	s.records, s.indexes = s.records[:n+1], append(s.indexes[:n], index)
	r := &s.records[n]
	*r = kgo.Record{Topic: p.Name, Value: p.Body, Headers: r.Headers[:0]}
	if p.Body == nil {
		r.Value = []byte{} // a record without a value would delete its key in a compacted topic
	}
	if p.Key != "" {
		r.Key = s.bytes(p.Key)
	}
	if p.ContentType != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: "content-type", Value: s.bytes(p.ContentType)})
	}
	for i := range p.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: p.Headers[i].Name, Value: s.bytes(p.Headers[i].Value)})
	}
}

func (s *session) bytes(text string) []byte {
	at := len(s.arena)
	s.arena = append(s.arena, text...)
	return s.arena[at:len(s.arena):len(s.arena)]
}

// OnProduceRecordPartitioned implements [kgo.HookProduceRecordPartitioned].
func (s *session) OnProduceRecordPartitioned(*kgo.Record, int32) {
	if s.unlined.Add(-1) == 0 {
		close(s.lined)
	}
}

// finish records the outcome of each record. One goroutine of the client calls it.
func (s *session) finish(r *kgo.Record, err error) {
	if err != nil {
		s.errs[r] = err
		s.failed.Store(true)
		s.OnProduceRecordPartitioned(r, 0) // it no longer waits for a partition
	}
	s.left.Done()
}

// send sends the added records and returns when each has an outcome. It returns false if any
// failed: the session is then closed, and [session.outcome] returns the reason. It cancels the call
// if the brokers cannot be reached.
//
// All records are assigned to a partition before any may leave. If they were sent while one is
// failing, later records of its partition would be accepted. Once assigned, the client prevents
// that: if a batch fails, it fails everything that it holds for the partition.
func (s *session) send(ctx context.Context, cancel context.CancelCauseFunc) bool {
	s.line.misses.Store(0)
	s.line.broken.Store(&cancel)
	s.line.shut.Store(true) // the client may still be in the last flush, and would send the first records with it
	s.line.wrote.Store(false)
	if err := s.begin(); err != nil {
		for i := range s.records {
			s.errs[&s.records[i]] = err
		}
		s.close()
		return false
	}
	s.left.Add(len(s.records))
	s.unlined.Store(int64(len(s.records)))
	s.lined = make(chan struct{})
	for i := range s.records {
		s.client.Produce(context.Background(), &s.records[i], s.finish) //nolint:contextcheck // a record fails with its session, not with ctx
	}
	s.await(ctx, cancel)
	if s.flushed = !s.failed.Load() && ctx.Err() == nil; s.flushed {
		s.line.shut.Store(false)
		s.flush(ctx)
		if ctx.Err() == nil && !s.failed.Load() && s.commit(ctx) {
			s.records, s.arena = s.records[:0], s.arena[:0]
			return true
		}
	}
	s.close()
	s.left.Wait()
	return false
}

// await waits until all records have a partition or have failed, or ctx has ended. The client does
// not report a refused login and keeps retrying: after a second without progress, await probes for
// it.
func (s *session) await(ctx context.Context, cancel context.CancelCauseFunc) {
	late := time.NewTimer(time.Second)
	defer late.Stop()
	for {
		select {
		case <-s.lined:
			return
		case <-ctx.Done():
			return
		case <-late.C:
			if err := s.probe(ctx); err != nil {
				cancel(err)
			}
		}
	}
}

// flush waits until all records have an outcome, or ctx has ended. A flush of the client can miss a
// topic whose partitions have just become known, so it is repeated.
func (s *session) flush(ctx context.Context) {
	for timeout := 10 * time.Millisecond; ctx.Err() == nil; timeout *= 2 {
		short, stop := context.WithTimeout(ctx, timeout)
		err := s.client.Flush(short)
		stop()
		if err == nil {
			return
		}
	}
}

// errUnsent is the outcome of a record that did not cause the failure and was not sent.
var errUnsent = errors.New("kafka: not sent, because another message failed")

// outcome returns why a record failed, with its failure class, or nil.
func (s *session) outcome(ctx context.Context, r *kgo.Record) error {
	err := s.errs[r]
	if s.sender != nil {
		return s.undone(ctx, err)
	}
	if err == nil {
		return nil
	}
	if known := classify(err); known != nil {
		return known
	}
	if cause := context.Cause(ctx); cause != nil { // the client itself would only report that it was closed
		err = cause
	} else if !s.flushed {
		return errUnsent
	}
	if s.line.wrote.Load() {
		return fmt.Errorf("kafka: not confirmed: %w", err)
	}
	return postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", err))
}

// close closes the producer. Nothing that it still holds can arrive after what a later session
// sends.
func (s *session) close() {
	s.line.shut.Store(true)
	s.client.Close()
}

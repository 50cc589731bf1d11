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

// session is an idempotent producer that one Publish at a time owns. What it has failed with is never tried on it again:
// it is closed, and the next one has a producer ID and connections of its own.
type session struct {
	client  *kgo.Client
	probe   func(context.Context) error
	line    *line
	packet  codec.Packet
	arena   []byte // holds keys and headers of the records
	records []kgo.Record
	indexes []int // of the records' messages in the call

	unlined atomic.Int64   // records that have neither a partition nor failed
	lined   chan struct{}  // closed when there are none
	left    sync.WaitGroup // records whose fate is not known
	failed  atomic.Bool
	errs    map[*kgo.Record]error // why, when none is left
	flushed bool
}

// newSession makes a producer. It does not connect.
func (p *Publisher) newSession() (s *session, err error) {
	s = &session{probe: p.cfg.probe, line: &line{dial: p.cfg.dial}, errs: make(map[*kgo.Record]error)}
	s.client, err = p.cfg.client(s.line.open,
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.StopProducerOnDataLossDetected(), // a broken sequence is an unknown outcome, not something to continue after
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(p.partitioner)),
		kgo.WithHooks(s),
		kgo.ManualFlushing(),
		kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(1<<24),
		kgo.ProducerBatchMaxBytes(int32(p.cfg.MaxBytes)),
		kgo.ProducerBatchCompression(compressions[p.cfg.Compression]),
		kgo.ProduceRequestTimeout(10*time.Second),
		// Of answers such as NOT_LEADER_FOR_PARTITION, with a look at the metadata in between. Few, because other topics of the
		// call wait for them; the relay tries longer.
		kgo.RecordRetries(6),
		kgo.UnknownTopicRetries(3), // because a broker may not have heard of a new topic yet
		kgo.ConnIdleTimeout(5*time.Minute),
	)
	return s, err
}

// add makes the packet, of the call's message with the index, part of what is sent next.
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

// finish is told the fate of each record, by one goroutine of the client.
func (s *session) finish(r *kgo.Record, err error) {
	if err != nil {
		s.errs[r] = err
		s.failed.Store(true)
		s.OnProduceRecordPartitioned(r, 0) // it waits for no partition any more
	}
	s.left.Done()
}

// send sends what was added and returns when the fate of each record is known. It returns false if any failed: the
// session is then closed, and [session.verdict] says why. The call is cancelled if the brokers cannot be reached.
//
// All records get their place in a partition before any of them may leave. Were they sent while one fails, those behind
// it in its partition would be accepted. From there on the client sees to that: when a batch fails it fails all that it
// holds for the partition.
func (s *session) send(ctx context.Context, cancel context.CancelCauseFunc) bool {
	s.line.misses.Store(0)
	s.line.broken.Store(&cancel)
	s.line.shut.Store(true) // the client may still be busy with the last flush, and would take the first ones along
	s.line.wrote.Store(false)
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
		if ctx.Err() == nil && !s.failed.Load() {
			s.records, s.arena = s.records[:0], s.arena[:0]
			return true
		}
	}
	s.close()
	s.left.Wait()
	return false
}

// await returns when all records have a partition or have failed, or ctx has ended. The client does not say that it is not let in, and tries
// again for long: when nothing comes, it is found out apart.
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

// flush returns when the fate of all records is known, or ctx has ended. A flush of the client overlooks a topic whose
// partitions have become known in this moment: another follows.
func (s *session) flush(ctx context.Context) {
	for patience := 10 * time.Millisecond; ctx.Err() == nil; patience *= 2 {
		short, stop := context.WithTimeout(ctx, patience)
		err := s.client.Flush(short)
		stop()
		if err == nil {
			return
		}
	}
}

// errUnsent is the verdict on a record that is not to blame and was not sent.
var errUnsent = errors.New("kafka: not sent, because another message failed")

// verdict says why a record failed, marked with what that means for the message, nil if it did not.
func (s *session) verdict(ctx context.Context, r *kgo.Record) error {
	err := s.errs[r]
	if err == nil {
		return nil
	}
	if verdict := classify(err); verdict != nil {
		return verdict
	}
	if cause := context.Cause(ctx); cause != nil { // what the client says then is only that it was closed
		err = cause
	} else if !s.flushed {
		return errUnsent
	}
	if s.line.wrote.Load() {
		return fmt.Errorf("kafka: not confirmed: %w", err)
	}
	return postrider.Unavailable(fmt.Errorf("kafka: not sent: %w", err))
}

// close gives the producer up. Nothing that it still held can arrive later than what follows on another session.
func (s *session) close() {
	s.line.shut.Store(true)
	s.client.Close()
}

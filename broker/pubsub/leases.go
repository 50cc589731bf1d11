package pubsub

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	callTime  = 3 * time.Second // how long the service may take to answer, and about how long Consume may take to end in an outage
	maxAckIDs = 1000            // in a request: an ID has up to about 200 bytes, and a request 512 KiB
)

// leases tracks the messages that a consumer holds. It extends their deadlines and acknowledges
// those that are done. It outlives streams: the service identifies a message by its acknowledgement
// ID, whichever stream delivered it.
type leases struct {
	c    *Consumer
	end  chan struct{}
	run  sync.WaitGroup
	todo chan struct{} // has an entry when a message is done

	mu       sync.Mutex
	held     map[string]bool // by acknowledgement ID
	finished []string        // in the order in which they were done, until acknowledged
}

func (c *Consumer) newLeases() *leases {
	l := &leases{c: c, end: make(chan struct{}), todo: make(chan struct{}, 1), held: make(map[string]bool)}
	l.run.Go(l.keep)
	return l
}

func (l *leases) hold(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id] = true
}

func (l *leases) done(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, id)
	l.finished = append(l.finished, id)
	select {
	case l.todo <- struct{}{}:
	default:
	}
}

// keep acknowledges finished messages immediately, batching those that finish during a call. A call
// takes at most a third of the deadline, and extensions are as far apart: one of them may fail.
func (l *leases) keep() {
	tick := time.NewTicker(l.c.cfg.AckDeadline / 3)
	defer tick.Stop()
	for {
		select {
		case <-l.todo:
			l.acknowledge()
		case <-tick.C:
			l.setDeadline(seconds(l.c.cfg.AckDeadline))
			l.acknowledge() // retries failed acknowledgements
		case <-l.end:
			return
		}
	}
}

// setDeadline sets the remaining deadline of unfinished messages. Zero gives them back.
func (l *leases) setDeadline(left int32) {
	l.mu.Lock()
	ids := slices.Collect(maps.Keys(l.held))
	l.mu.Unlock()
	for part := range slices.Chunk(ids, maxAckIDs) {
		err := l.call(func(ctx context.Context, conn connection) error {
			return conn.SubscriptionAdminClient.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
				Subscription: l.c.subscription, AckIds: part, AckDeadlineSeconds: left,
			})
		})
		if err != nil {
			l.c.cfg.Logger.Warn("pubsub: deadlines not set, messages may be redelivered", "subscription", l.c.subscription, "messages", len(part), "err", err)
		}
	}
}

// acknowledge acknowledges finished messages. One goroutine at a time calls it.
func (l *leases) acknowledge() {
	for {
		l.mu.Lock()
		part := slices.Clone(l.finished[:min(len(l.finished), maxAckIDs)])
		l.mu.Unlock()
		if len(part) == 0 {
			return
		}
		err := l.call(func(ctx context.Context, conn connection) error {
			return conn.SubscriptionAdminClient.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: l.c.subscription, AckIds: part})
		})
		switch status.Code(err) {
		case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Aborted, codes.ResourceExhausted, codes.Unknown:
			return // retried later; the stream logs an outage
		case codes.OK:
		default:
			l.c.cfg.Logger.Warn("pubsub: messages not acknowledged, they will be redelivered", "subscription", l.c.subscription, "messages", len(part), "err", err)
		}
		l.mu.Lock()
		l.finished = slices.Delete(l.finished, 0, len(part))
		l.mu.Unlock()
	}
}

func (l *leases) call(do func(context.Context, connection) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(l.c.cfg.AckDeadline/3, callTime))
	defer cancel()
	conn, err := l.c.keeper.Get(ctx)
	if err != nil {
		return status.FromContextError(err).Err()
	}
	return do(ctx, conn)
}

// close acknowledges finished messages and gives the others back, so that they are redelivered at
// once.
func (l *leases) close() {
	close(l.end)
	l.run.Wait()
	l.acknowledge()
	l.setDeadline(0)
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

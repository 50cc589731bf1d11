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
	callTime  = 3 * time.Second // how long the service may take to answer, and so about how long Consume may take to end in an outage
	maxAckIDs = 1000            // in a request: they have up to about 200 bytes, and requests 512 KiB
)

// leases are the messages that a consumer holds: their deadlines are extended, and those that are done acknowledged. They outlast
// streams: the service knows a message by its acknowledgement ID, whichever stream it came on.
type leases struct {
	c    *Consumer
	end  chan struct{}
	run  sync.WaitGroup
	todo chan struct{} // has an entry when something is done

	mu       sync.Mutex
	held     map[string]bool // by acknowledgement ID
	finished []string        // in the order in which they were done, until the service knows
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

// keep acknowledges what is done at once, and together what was done during the call before. A call takes at most a third of a deadline,
// and so does the time between two extensions: one may fail.
func (l *leases) keep() {
	tick := time.NewTicker(l.c.cfg.AckDeadline / 3)
	defer tick.Stop()
	for {
		select {
		case <-l.todo:
			l.acknowledge()
		case <-tick.C:
			l.setDeadline(seconds(l.c.cfg.AckDeadline))
			l.acknowledge() // what failed
		case <-l.end:
			return
		}
	}
}

// setDeadline sets what is left of the deadlines of what is not done. Zero gives the messages back.
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
			l.c.cfg.Logger.Warn("pubsub: deadlines not set, the messages may come again", "subscription", l.c.subscription, "messages", len(part), "err", err)
		}
	}
}

// acknowledge acknowledges what is done. It is called by one goroutine at a time.
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
			return // it is tried again; of an outage the stream tells the log
		case codes.OK:
		default:
			l.c.cfg.Logger.Warn("pubsub: messages not acknowledged, they come again", "subscription", l.c.subscription, "messages", len(part), "err", err)
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

// close acknowledges what is done and gives the rest back, so that it is delivered again at once.
func (l *leases) close() {
	close(l.end)
	l.run.Wait()
	l.acknowledge()
	l.setDeadline(0)
}

func seconds(d time.Duration) int32 { return int32(d / time.Second) }

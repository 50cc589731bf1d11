package sqs

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/postrider/postrider/broker/sqs/internal/service"
)

// held tracks messages that a consumer has received and not deleted. It keeps them hidden from
// other consumers.
type held struct {
	client  *sqs.Client
	timeout time.Duration // the visibility timeout
	wake    chan struct{} // a message is done

	mu      sync.Mutex
	address string
	count   int
	msgs    map[string]*holding // by SQS message ID
}

// holding is one held message.
type holding struct {
	number  int // order of receipt
	receipt string
	done    bool
}

func newHeld(client *sqs.Client, timeout time.Duration) *held {
	return &held{client: client, timeout: timeout, wake: make(chan struct{}, 1), msgs: make(map[string]*holding)}
}

// use sets the queue's address.
func (h *held) use(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.address = address
}

// take records a message and reports whether to handle it. A message that is redelivered while it
// is held was hidden for too short; only its receipt changes.
func (h *held) take(m *types.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, receipt := aws.ToString(m.MessageId), aws.ToString(m.ReceiptHandle)
	if old := h.msgs[id]; old != nil {
		if old.receipt = receipt; old.done {
			h.nudge()
		}
		return false
	}
	h.count++
	h.msgs[id] = &holding{number: h.count, receipt: receipt}
	return true
}

// done schedules the deletion of a message.
func (h *held) done(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.msgs[id].done = true
	h.nudge()
}

func (h *held) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// keep deletes finished messages, and keeps the others hidden, until ctx ends.
func (h *held) keep(ctx context.Context) {
	var run sync.WaitGroup
	run.Go(func() { // concurrently, so that neither waits for the other's requests
		every(ctx, h.timeout/3, nil, h.renew)
	})
	every(ctx, h.timeout/3, h.wake, h.delete) // periodically, because a message that is not deleted blocks its group
	run.Wait()
}

func every(ctx context.Context, pause time.Duration, wake <-chan struct{}, do func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-wake:
		case <-ctx.Done():
			return
		}
		do(ctx)
	}
}

// leave deletes finished messages and gives the others back, oldest first. It is limited in time,
// even if the network fails.
func (h *held) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h.delete(ctx)
	h.hide(ctx, 0)
}

func (h *held) renew(ctx context.Context) { h.hide(ctx, seconds(h.timeout)) }

// hide hides unfinished messages for the given time. Failures are ignored: the messages are then
// redelivered to some consumer.
func (h *held) hide(ctx context.Context, timeout int32) {
	address, batches := h.pick(false)
	for _, ids := range batches {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &address}
		for i, one := range ids {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &one.receipt, VisibilityTimeout: timeout,
			})
		}
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		_, _ = h.client.ChangeMessageVisibilityBatch(limited, in)
		cancel()
	}
}

// delete deletes finished messages. Those that it cannot delete stay and are retried.
func (h *held) delete(ctx context.Context) {
	address, batches := h.pick(true)
	for _, ids := range batches {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &address}
		for i, one := range ids {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &one.receipt})
		}
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		out, err := h.client.DeleteMessageBatch(limited, in)
		cancel()
		if err != nil {
			return
		}
		failed := make(map[string]bool)
		for _, f := range out.Failed {
			failed[aws.ToString(f.Id)] = !f.SenderFault // otherwise the receipt has expired, and the message is redelivered
		}
		h.mu.Lock()
		for i, one := range ids {
			if !failed[strconv.Itoa(i)] && h.msgs[one.id].receipt == one.receipt {
				delete(h.msgs, one.id)
			}
		}
		h.mu.Unlock()
	}
}

// picked is a message of a request.
type picked struct {
	id, receipt string
	number      int
}

// pick returns the messages that are done, or those that are not, grouped into requests, oldest
// first.
func (h *held) pick(done bool) (address string, batches [][]picked) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []picked
	for id, one := range h.msgs {
		if one.done == done {
			all = append(all, picked{id, one.receipt, one.number})
		}
	}
	slices.SortFunc(all, func(a, b picked) int { return a.number - b.number })
	return h.address, slices.Collect(slices.Chunk(all, service.MostEntries))
}

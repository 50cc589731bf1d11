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

// held is what a consumer has received and not deleted. It keeps these messages invisible to other consumers.
type held struct {
	client  *sqs.Client
	timeout time.Duration // for which SQS keeps a message invisible
	wake    chan struct{} // something is done

	mu      sync.Mutex
	address string
	count   int
	msgs    map[string]*holding // by the IDs of SQS
}

// holding is one message.
type holding struct {
	number  int // in the order of receipt
	receipt string
	done    bool
}

func newHeld(client *sqs.Client, timeout time.Duration) *held {
	return &held{client: client, timeout: timeout, wake: make(chan struct{}, 1), msgs: make(map[string]*holding)}
}

// use says where the queue is.
func (h *held) use(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.address = address
}

// take notes a message and reports whether it is to be handled. One that comes again while it is held was invisible for too short: it only has
// a new receipt.
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

// done has a message deleted, soon.
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

// keep deletes what is done, and keeps the others invisible, until ctx ends.
func (h *held) keep(ctx context.Context) {
	var run sync.WaitGroup
	run.Go(func() { // beside the other, so that neither waits for the other's requests
		every(ctx, h.timeout/3, nil, h.renew)
	})
	every(ctx, h.timeout/3, h.wake, h.delete) // again and again: while one of a group is there, its others do not come
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

// leave deletes what is done and gives back the rest, the oldest first. It does not take long, whatever the network does.
func (h *held) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	h.delete(ctx)
	h.hide(ctx, 0)
}

func (h *held) renew(ctx context.Context) { h.hide(ctx, seconds(h.timeout)) }

// hide makes messages that are not done invisible for so long. Nothing helps if that fails: they come again, here or elsewhere.
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

// delete deletes what is done. What that fails for stays, to be tried again.
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
			failed[aws.ToString(f.Id)] = !f.SenderFault // otherwise the receipt is too old, and the message comes again
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

// pick returns the messages that are done, or those that are not, in requests, the oldest first.
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

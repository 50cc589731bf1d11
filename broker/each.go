package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// Each publishes messages one by one, for brokers without batch sends. Messages of one key are sent
// in sequence, up to the first failure; at most parallel keys are sent at a time. In the second half
// of the time until ctx's deadline, no message is begun: it might be cancelled, which leaves its
// outcome unknown, so that it would come again. The result is what [postrider.Publisher] requires; a
// publisher built on Each keeps order.
func Each(ctx context.Context, msgs []postrider.Message, parallel int, send func(context.Context, *postrider.Message) error) []error {
	errs := make([]error, len(msgs))
	late := func() bool { return false }
	if deadline, ok := ctx.Deadline(); ok {
		last := time.Now().Add(time.Until(deadline) / 2)
		late = func() bool { return time.Now().After(last) }
	}
	places := make(chan struct{}, max(parallel, 1))
	var run sync.WaitGroup
	for _, chain := range chains(msgs) {
		places <- struct{}{}
		run.Go(func() {
			defer func() { <-places }()
			sendChain(ctx, msgs, chain, errs, late, send)
		})
	}
	run.Wait()
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// chains groups the indexes of the messages by key, in the order of first appearance. A message
// without a key is a chain of its own.
func chains(msgs []postrider.Message) [][]int {
	var all [][]int
	byKey := make(map[string]int, len(msgs))
	for i := range msgs {
		key := msgs[i].OrderKey()
		if at, ok := byKey[key]; ok && key != "" {
			all[at] = append(all[at], i)
			continue
		}
		byKey[key] = len(all)
		all = append(all, []int{i})
	}
	return all
}

func sendChain(ctx context.Context, msgs []postrider.Message, chain []int, errs []error, late func() bool, send func(context.Context, *postrider.Message) error) {
	failed := false
	for _, i := range chain {
		switch {
		case failed || late() && ctx.Err() == nil:
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
		case ctx.Err() != nil:
			errs[i] = postrider.Unavailable(ctx.Err())
		default:
			errs[i] = send(ctx, &msgs[i])
		}
		failed = failed || errs[i] != nil
	}
}

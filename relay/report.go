package relay

import (
	"context"
	"time"

	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/feeds"
)

// reportInterval is the time between two reports of problems.
const reportInterval = time.Second

// report writes the problems of the destination to the store until ctx ends, so that operators can
// query the cause.
func (t *epoch) report(ctx context.Context) {
	reporter, ok := t.feed.(feeds.Reporter)
	if !ok {
		return
	}
	trouble := outage{log: t.log, what: "reporting problems"}
	for sleep.For(ctx, reportInterval) {
		all := t.problems.take()
		if len(all) == 0 {
			continue
		}
		call, cancel := context.WithTimeout(t.ctx, callTimeout)
		err := reporter.Report(call, all) //nolint:contextcheck // a call is completed when ctx ends
		cancel()
		if err == nil {
			trouble.ok()
			continue
		}
		trouble.fail(err)
		t.problems.restore(all)
	}
}

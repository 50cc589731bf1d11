package relay

import (
	"context"
	"errors"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
	"github.com/postrider/postrider/store/feeds"
)

// reader fetches messages for all workers in one call, as fast as they arrive and no faster than the
// workers have room.
type reader struct {
	*epoch
	want  []feeds.Demand
	asked map[int]*worker // by shard: the worker that requested messages and is not known to be behind. A newer worker of the shard must not get them.

	shrink int // how many times limits are halved, because recent reads timed out
}

// mostShrink limits shrink: down to a thousandth of a page.
const mostShrink = 10

// fewSuspects is the page size for a shard whose previous owners have died: the size of its
// messages may be the cause.
const fewSuspects = 10

// The cost of a read hardly depends on how much it returns. When messages arrive fast, the reader
// therefore waits until busyPage of them have gathered, at most mostGather times PollMin. When they
// arrive slowly, it waits until the next one is expected, at most mostDue times PollMin.
const (
	busyPage   = 16
	mostGather = 3
	mostDue    = 5
)

// While nothing arrives, the read interval grows by half with each read, up to idlePoll, and then
// to 1/quietPart of the idle time. A message waits for a 64th of the idle time at most, and an idle
// database has almost no load.
const (
	idlePoll  = 50 * time.Millisecond
	quietPart = 64
)

// idleRead returns the interval after a read that returned nothing: last is the previous interval,
// quiet the idle time.
func (c *Config) idleRead(last, quiet time.Duration) time.Duration {
	return min(max(last, c.PollMin)*3/2, max(idlePoll, quiet/quietPart), c.PollMax)
}

// nextRead returns the interval after a read that returned messages, which arrived within the given
// time.
func (c *Config) nextRead(messages int, within time.Duration) time.Duration {
	gather := c.PollMin * time.Duration(min(max(messages/busyPage, 1), mostGather))
	due := min(within/time.Duration(messages), c.PollMin*mostDue)
	return min(max(gather, due), c.PollMax)
}

// read fetches messages for the workers until ctx ends. It does not cancel a running Read then: a
// store may have to drop a connection whose call was cancelled, and with it the progress that is
// not settled yet.
func (t *epoch) read(ctx context.Context) {
	rd := reader{epoch: t, asked: make(map[int]*worker)}
	cfg := &t.cfg
	trouble := outage{log: t.log, what: "reading"}
	pause := backoff{policy: cfg.Outage}
	timer := time.NewTimer(0)
	defer timer.Stop()

	interval, brought := cfg.PollMin, time.Now()
	for ctx.Err() == nil {
		if !rd.collect() { // no worker, or none with room: nothing to do until that changes
			select {
			case <-t.more:
			case <-ctx.Done():
			}
			continue
		}
		start := time.Now()
		messages, more, err := rd.fetch() //nolint:contextcheck // what has begun lasts as long as the epoch
		switch {
		case err != nil:
			if t.over(err) || t.ctx.Err() != nil {
				return
			}
			if errors.Is(err, context.DeadlineExceeded) {
				rd.shrink = min(rd.shrink+1, mostShrink)
			}
			trouble.fail(err)
			sleep.For(ctx, pause.next())
			continue
		case more:
			interval, brought = 0, start
		case messages > 0:
			interval = cfg.nextRead(messages, start.Sub(brought))
			brought = start
		default:
			interval = cfg.idleRead(interval, start.Sub(brought))
		}
		trouble.ok()
		pause.reset()
		rd.shrink = max(rd.shrink-1, 0)

		for wait := true; wait && interval > 0; {
			rest := interval - time.Since(start)
			if rest <= 0 {
				break
			}
			timer.Reset(rest)
			select {
			case <-timer.C:
				wait = false
			case <-t.more:
				wait = false
			case <-t.wake:
				interval = cfg.PollMin // counted from the last read: at once unless that was just now
			case <-ctx.Done():
				return
			}
		}
	}
}

// collect computes the demand of each worker and reports whether there is any. Workers with a demand
// share the byte budget. An empty worker may always have one message, so that one that is larger than
// the budget passes too.
func (rd *reader) collect() bool {
	cfg := &rd.cfg
	rd.want = rd.want[:0]
	clear(rd.asked)
	free := cfg.Memory
	var roomy, fair []*worker
	workers := rd.workers()
	for _, w := range workers {
		f, ok := w.offer(cfg)
		free -= f.Bytes
		switch {
		case ok:
			roomy = append(roomy, w)
		case cfg.ReadAhead-f.Buffered >= (cfg.ReadAhead+3)/4 && !w.ending():
			fair = append(fair, w)
		}
	}
	if len(roomy) > 0 { // a read for one worker costs little more for additional workers
		roomy = append(roomy, fair...)
	}
	share := free / max(len(roomy), 1)
	tight := share < cfg.Memory/(4*max(len(workers), 1)) // avoid tiny pages
	rd.tight.Store(tight)
	for _, w := range roomy {
		f := w.look()
		if tight && f.Buffered > 0 {
			w.await()
			continue
		}
		d := feeds.Demand{Shard: w.shard, Limit: cfg.ReadAhead - f.Buffered, Bytes: max(share, 1), Doubt: w.recall.doubts()}
		if f.Suspicious {
			d.Limit = min(d.Limit, fewSuspects)
		}
		d.Limit, d.Bytes = max(d.Limit>>rd.shrink, 1), max(d.Bytes>>rd.shrink, 1)
		rd.want = append(rd.want, d)
		rd.asked[w.shard] = w
	}
	return len(rd.want) > 0
}

// fetch reads once and passes the messages to their workers. It returns the number of messages and
// whether to read again at once.
func (rd *reader) fetch() (messages int, more bool, err error) {
	call, cancel := context.WithTimeout(rd.ctx, callTimeout)
	defer cancel()
	rd.count.reads.Add(1)
	batches, err := rd.feed.Read(call, rd.want)
	if err != nil {
		return 0, false, err
	}
	for _, b := range batches {
		w := rd.asked[b.Shard]
		if w == nil {
			continue
		}
		switch {
		case len(b.Messages) == 0:
		case w.ending():
			rd.missed(w)
			delete(rd.asked, b.Shard) // it has not seen these messages
		default:
			own := b // the worker must not keep the batches of other workers alive
			w.push(&own)
			messages += count(b.Messages)
		}
		if b.More {
			delete(rd.asked, b.Shard)
			more = w.isBehind(&rd.cfg) || more
		}
	}
	for _, w := range rd.asked {
		w.reach()
	}
	return messages, more, nil
}

// count returns the number of messages without canaries, which arrive all the time.
func count(msgs []postrider.Message) (n int) {
	for i := range msgs {
		if msgs[i].Type != feeds.CanaryType {
			n++
		}
	}
	return n
}

// missed handles messages that were read for a worker that is ending. If the relay has lost and
// regained the shard during the read, the store considers them handed out, and the new worker must
// not continue behind them: that would lose them. Releasing the shard makes the store start again
// at what is settled.
func (t *epoch) missed(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch now := t.held[w.shard]; now {
	case w: // it releases the shard itself
	case nil:
		t.holed[w.shard] = true
	default:
		now.drain()
	}
}
